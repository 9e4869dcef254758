import { chmod, lstat, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FetchedKeys } from '../../../src/core/keys/loaded-keys.ts';
import { openKeysCache } from '../../../src/server/keys/keys-cache.ts';
import type { Log } from '../../../src/server/observation/log.ts';
import { type Answer, send } from '../../support/http-client.ts';
import type { OpenedService } from '../../support/open-service.ts';
import { makeProofKey } from '../../support/proofs.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { bearer, findVariant, openVariant, startInVain } from '../../support/variant-service.ts';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-keys-'));
  file = join(folder, 'keys.json');
});
afterEach(() => rm(folder, { recursive: true }));

describe('the file that keeps the keys', () => {
  const issuer = 'https://idp.example/';
  const { jwk } = makeProofKey();
  const keys: FetchedKeys = {
    keys: [{ ...jwk, kid: 'one' }],
    published: ['one', 'two'],
    ageSeconds: 10,
    lifetimeSeconds: 600,
  };
  let problems: string[] = [];
  const log: Pick<Log, 'write'> = {
    write: (_level, event, fields) => void problems.push(`${event}: ${String(fields?.['problem'])}`),
  };
  const open = (now = 1000) => openKeysCache({ file, staleSeconds: 3600, log, now: () => now });

  beforeEach(async () => {
    problems = [];
    const cache = await open();
    cache.keep(issuer, keys);
    await cache.flush();
  });

  it('is only its owner’s, and leaves no temporary files', async () => {
    expect((await lstat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['keys.json']);
    expect(problems).toEqual([]);
  });

  it('gives back what was kept, older by the time that has passed', async () => {
    expect((await open(1050)).find(issuer)).toEqual({ ...keys, ageSeconds: 60 });
    expect((await open()).find('https://other.example/')).toBeUndefined();
  });

  it('two processes with one file → it has the keys of both, and the later ones of each issuer', async () => {
    const [first, second] = [open(), open()];
    const other = 'https://other.example/';
    const later: FetchedKeys = { ...keys, published: ['one', 'three'], ageSeconds: 0 };
    second.keep(issuer, later);
    await second.flush();
    first.keep(other, keys);
    await first.flush();
    expect([open().find(issuer), open().find(other)]).toEqual([later, keys]);
  });

  it('keys of another process that are dated in the future → replaced', async () => {
    const wrong = open(2000);
    const cache = open();
    wrong.keep(issuer, { ...keys, ageSeconds: 0 });
    await wrong.flush();
    cache.keep(issuer, keys);
    await cache.flush();
    expect([open().find(issuer), problems]).toEqual([keys, []]);
  });

  it('no file → nothing is found, and nothing is said', async () => {
    await rm(file);
    expect((await open()).find(issuer)).toBeUndefined();
    expect(problems).toEqual([]);
  });

  const rewrite = async (change: (text: string) => string): Promise<void> =>
    writeFile(file, change(await readFile(file, 'utf8')));

  it.each<[name: string, change: () => Promise<unknown>, now: number, problem: RegExp]>([
    ['too old', async () => {}, 1000 + 4200, /too old/],
    ['dated in the future', async () => {}, 900, /future/],
    ['no JSON', () => writeFile(file, '{'), 1000, /broken/],
    ['empty', () => writeFile(file, ''), 1000, /broken/],
    ['without keys', () => rewrite((text) => text.replace(/"keys":\[.*?\]/, '"keys":[]')), 1000, /broken/],
    ['with members twice', () => rewrite((text) => text.replace('{', '{"version":1,')), 1000, /broken/],
    ['with another version', () => rewrite((text) => text.replace('"version":1', '"version":2')), 1000, /broken/],
    ['fresh for ever', () => rewrite((text) => text.replace('600', '600000')), 1000, /broken/],
    ['writable by its group', () => chmod(file, 0o620), 1000, /group or others can write/],
    ['writable by others', () => chmod(file, 0o602), 1000, /group or others can write/],
    ['a link', () => rename(file, `${file}.real`).then(() => symlink(`${file}.real`, file)), 1000, /a link/],
    [
      'a folder',
      () =>
        rm(file)
          .then(() => mkdtemp(`${file}-`))
          .then((made) => rename(made, file)),
      1000,
      /regular file/,
    ],
    ['too large', () => writeFile(file, ' '.repeat(8 * 1024 * 1024 + 1)), 1000, /more than/],
  ])('%s → ignored, with one line in the log', async (_name, change, now, problem) => {
    await change();
    expect((await open(now)).find(issuer)).toBeUndefined();
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems[0]).toMatch(/^keys_cache_ignored: /);
  });

  it.skipIf(process.getuid?.() !== 0)('of another user → ignored, with one line in the log', async () => {
    const { chown } = await import('node:fs/promises');
    await chown(file, 12_345, 12_345);
    expect((await open()).find(issuer)).toBeUndefined();
    expect(problems).toEqual([expect.stringMatching(/another user/)]);
  });

  it('a folder that is not there → said once for each write, and the service goes on', async () => {
    const cache = await openKeysCache({ file: join(folder, 'none', 'keys.json'), staleSeconds: 0, log });
    cache.keep(issuer, keys);
    await cache.flush();
    expect(problems).toEqual([expect.stringMatching(/^keys_cache_not_written: .*ENOENT/)]);
  });
});

describe('a restart while the provider is down', () => {
  let provider: TestProvider;
  const running: OpenedService[] = [];
  beforeEach(async () => {
    provider = await startTestProvider();
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((service) => service.stop()));
    await provider.close();
  });

  async function start(name: 'a' | 'b', environment: Readonly<Record<string, string>>): Promise<OpenedService> {
    const service = await openVariant(findVariant(name), provider, { KEYS_CACHE: file, ...environment });
    running.push(service);
    return service;
  }
  const call = ({ url }: OpenedService, token: string): Promise<Answer> =>
    send(url, '/api/private', { headers: bearer(token) });

  it.each(['a', 'b'] as const)('variant %s → no valid request is lost, and the service is ready', async (name) => {
    const before = await start(name, {});
    await before.findLog(({ event }) => event === 'keys_fetched');
    expect(await before.stop()).toBe(0);
    await provider.down();

    const after = await start(name, {});
    const token = await provider.sign();
    const statuses = await Promise.all(Array.from({ length: 40 }, async () => (await call(after, token)).status));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect((await send(after.adminUrl ?? '', '/readyz')).status).toBe(200);
    await after.findLog(({ event }) => event === 'keys_restored');
    // Keys of an earlier start do not keep the service from looking for newer ones.
    await after.findLog(({ event }) => event === 'keys_fetch_failed');
    await provider.up();
    await after.findLog(({ event }) => event === 'keys_fetched');
  });

  it('a file with keys of another issuer → 503, and not 401', async () => {
    const other = await startTestProvider();
    const before = await openVariant(findVariant('a'), other, { KEYS_CACHE: file });
    await before.findLog(({ event }) => event === 'keys_fetched');
    await before.stop();
    await other.close();
    await provider.down();
    const after = await start('a', {});
    expect((await call(after, await provider.sign())).status).toBe(503);
    expect((await send(after.adminUrl ?? '', '/readyz')).status).toBe(503);
  });

  it('variant b, a file that others can write to → 69', async () => {
    const before = await start('b', {});
    await before.stop();
    await chmod(file, 0o666);
    await provider.down();
    const { end } = await startInVain(openVariant(findVariant('b'), provider, { KEYS_CACHE: file }));
    expect(end.code).toBe(69);
  });
});
