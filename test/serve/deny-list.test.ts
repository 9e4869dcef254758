import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { send } from '../support/http-client.ts';
import { type ServiceProcess, ServiceStartError } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { bearer, findVariant, startVariant } from '../support/variant-service.ts';

let provider: TestProvider;
let folder: string;
let file: string;
let service: ServiceProcess | undefined;

beforeAll(async () => {
  provider = await startTestProvider();
});
afterAll(() => provider.close());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-deny-'));
  file = join(folder, 'denied.json');
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  await rm(folder, { recursive: true });
});

async function start(environment: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  service = await startVariant(findVariant('a'), provider, { DENY_LIST: file, ...environment });
  return service;
}

/** The status of a call with this token, and the reason that its line in the log has. */
async function call(at: ServiceProcess, token: string): Promise<readonly [number, unknown]> {
  const answer = await send(at.url, '/api/private', { headers: bearer(token) });
  if (answer.status === 200) return [200, undefined];
  const id = answer.headers.get('x-request-id');
  return [answer.status, (await at.findLog((line) => line['id'] === id))['reason']];
}

const write = (values: unknown) =>
  writeFile(file, typeof values === 'string' ? values : JSON.stringify(values), { flush: true });
const revoked = [401, 'revoked_token'] as const;
const admitted = [200, undefined] as const;

describe('the service with DENY_LIST', () => {
  it('values in the file → refused; a replaced file counts within seconds, cached tokens included', async () => {
    await write({ sub: ['mallory'] });
    const at = await start();
    const [mallory, alice] = [
      await provider.sign({ sub: 'mallory' }),
      await provider.sign({ sub: 'alice', jti: 'one' }),
    ];
    expect(await call(at, mallory)).toEqual(revoked);
    expect(await call(at, alice)).toEqual(admitted);
    await writeFile(`${file}.new`, JSON.stringify({ jti: ['one'] }));
    await rename(`${file}.new`, file);
    await vi.waitFor(async () => expect(await call(at, alice)).toEqual(revoked), { timeout: 10_000, interval: 100 });
    expect(await call(at, mallory)).toEqual(admitted);
  });

  it('SIGHUP → read at once; a file that cannot be used, or is gone, changes nothing, and the log says why', async () => {
    await write({ sub: ['mallory'] });
    const at = await start();
    const token = await provider.sign({ sub: 'mallory' });
    const kept = async (problem: RegExp) => {
      at.signal('SIGHUP');
      const line = await at.findLog(
        ({ event, problem: said }) => event === 'deny_list_kept' && problem.test(String(said)),
      );
      expect(line).toMatchObject({ level: 'error', entries: 1 });
      expect(JSON.stringify(line)).not.toContain('mallory');
      expect(await call(at, token)).toEqual(revoked);
    };
    await write('{"sub":["mallory"');
    await kept(/not one JSON object/);
    await write({ sub: ['mallory', 1] });
    await kept(/only under jti, sub and kid/);
    await write({ user: ['mallory'] });
    await kept(/only under jti, sub and kid/);
    await rm(file);
    await kept(/cannot be read \(ENOENT\)/);
    await write({});
    at.signal('SIGHUP');
    await vi.waitFor(async () => expect(await call(at, token)).toEqual(admitted), { timeout: 10_000, interval: 50 });
  });

  it.each([
    ['is not there', undefined, /DENY_LIST cannot be used\. The file cannot be read \(ENOENT\)/],
    ['is no JSON', 'denied', /DENY_LIST cannot be used\. The file is not one JSON object/],
    ['has another list', '{"iss":[]}', /only under jti, sub and kid/],
  ])('a file that %s at the start → it does not start, status 78', async (_name, text, message) => {
    if (text !== undefined) await write(text);
    const error = await start({}).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ServiceStartError);
    const { end, stderr, logs } = error as ServiceStartError; // just checked
    expect(end.code).toBe(78);
    expect(`${stderr}${JSON.stringify(logs)}`).toMatch(message);
    expect(stderr).not.toContain('..');
  });
});
