import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { StatusList } from '@sd-jwt/jwt-status-list';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { send } from '../support/http-client.ts';
import { awaitReady, type ServiceProcess, ServiceStartError, startService } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';

let provider: TestProvider;
let stranger: TestProvider;
let folder: string;
let caFile: string;
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  [provider, stranger] = await Promise.all([startTestProvider(), startTestProvider()]);
  folder = await mkdtemp(join(tmpdir(), 'portcullis-status-lists-'));
  caFile = join(folder, 'ca.pem');
  await writeFile(caFile, `${await readFile(provider.caFile, 'utf8')}\n${await readFile(stranger.caFile, 'utf8')}`);
});
afterAll(async () => {
  await Promise.all([provider.close(), stranger.close()]);
  await rm(folder, { recursive: true });
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Claims = Readonly<Record<string, unknown>>;
type Path = `/status/${string}`;

const at = (path: string, of = provider): string => new URL(path, of.issuer).href;

async function start(environment: Claims = {}, args: readonly string[] = []): Promise<ServiceProcess> {
  const service = await startService({
    environment: {
      ...{ ISSUER: provider.issuer, IDP_AUDIENCE: provider.audience, NODE_EXTRA_CA_CERTS: caFile },
      ...{ STATUS_LISTS: `${at('/status/')},${at('/status/', stranger)}` },
      ...(environment as Record<string, string>),
    },
    ...(args.length > 0 && { command: 'gate', args }),
  });
  closers.push(() => service.stop());
  await awaitReady(service);
  return service;
}

/** Serves a list, signed by `by` and fetched from the provider. */
async function publish(path: Path, statuses: number[], claims: Claims = {}, by = provider): Promise<void> {
  const lst = new StatusList(statuses, 2).compressStatusList();
  const own = { iss: provider.issuer, sub: at(path), aud: undefined, exp: undefined, scope: undefined, ttl: 60 };
  const list = await by.sign(
    { ...own, status_list: { bits: 2, lst }, ...claims },
    { header: { typ: 'statuslist+jwt' } },
  );
  provider.serve(path, (response) => {
    response.writeHead(200, { 'content-type': 'application/statuslist+jwt' }).end(list);
  });
}

const token = (idx: unknown, uri: string) => provider.sign({ status: { status_list: { idx, uri } } });

/** Sends the token on many connections, so that each worker has some; returns the distinct responses. */
async function decide(service: ServiceProcess, idx: unknown, uri: string, path = '/api/private') {
  const headers = ['authorization', `Bearer ${await token(idx, uri)}`];
  const responses = await Promise.all(Array.from({ length: 8 }, () => send(service.url, path, { headers })));
  return [...new Set(responses.map((response) => response.status))];
}

describe('', () => {
  it('valid, revoked, suspended, outside the list → 200, 401, 401, 401; one fetch for each worker', async () => {
    const path: Path = `/status/values`;
    await publish(path, [0, 1, 2, 3]);
    const service = await start({});
    const indexes = [0, 1, 2, 3, 4, 2 ** 40, Number.MAX_SAFE_INTEGER];
    const seen: number[][] = [];
    for (const idx of indexes) seen.push(await decide(service, idx, at(path)));
    expect(seen).toEqual([[200], ...Array.from({ length: 6 }, () => [401])]);
    const line = await service.findLog(({ reason }) => reason === 'revoked_token');
    expect(line).toMatchObject({ revocation: 'status_list', status: 401 });
    expect(provider.requests(path)).toBeLessThanOrEqual(1);
  });

  it('a list that changes → every worker refuses without a new token', async () => {
    const path: Path = `/status/changes`;
    await publish(path, [0], { ttl: 1 });
    const service = await start({});
    expect(await decide(service, 0, at(path))).toEqual([200]);
    await publish(path, [1], { ttl: 1 });
    await vi.waitFor(async () => expect(await decide(service, 0, at(path))).toEqual([401]), { timeout: 10_000 });
  });
});

it.each([
  ['idx above every safe integer', 1e300],
  ['a negative idx', -1],
  ['an idx that is a string', '1'],
])('%s → 401 malformed_status, no fetch', async (_title, idx) => {
  const service = await start();
  expect(await decide(service, idx, at('/status/never'))).toEqual([401]);
  await service.findLog(({ reason }) => reason === 'malformed_status');
  expect(provider.requests('/status/never')).toBe(0);
});

it.each([
  ['a host that is not listed', 'https://status.example/status/1'],
  ['a path that is not listed', '/other/1'],
  ['a path with dot segments', '/status/../other/1'],
  ['http', '/status/1'],
])('%s → 401 status_list_not_allowed, no fetch', async (title, path) => {
  const service = await start();
  const origin = title === 'http' ? provider.issuer.replace('https', 'http') : provider.issuer;
  expect(await decide(service, 0, path.startsWith('/') ? origin.slice(0, -1) + path : path)).toEqual([401]);
  await service.findLog(({ reason }) => reason === 'status_list_not_allowed');
  expect(provider.requests('/other/1')).toBe(0);
});

describe('lists that cannot be used → 503 revocation_unknown, and other tokens pass', () => {
  const bomb = deflateSync(Buffer.alloc(64 * 1024 * 1024)).toString('base64url');
  const invalid: Record<string, (path: Path) => Promise<void> | void> = {
    'a list of another issuer': (path) => publish(path, [0], { iss: stranger.issuer }, stranger),
    'a list about this issuer, signed by another': (path) => publish(path, [0], {}, stranger),
    'a zip bomb of 64 MiB': (path) => publish(path, [0], { status_list: { bits: 2, lst: bomb } }),
    'a response that never ends': (path) => provider.serve(path, (response) => void response.writeHead(200).write('e')),
    'a connection that is cut': (path) => provider.serve(path, (response) => void response.destroy()),
    'status 404': (path) => provider.serve(path, undefined),
    'a cycle of redirects': (path) =>
      provider.serve(path, (response) => void response.writeHead(302, { location: at(path) }).end()),
    'a body over the limit': (path) =>
      provider.serve(path, (response) => void response.writeHead(200).end('e'.repeat(17 * 1024 * 1024))),
  };
  it.each(Object.keys(invalid))(
    '%s',
    async (title) => {
      const path: Path = `/status/invalid-${Object.keys(invalid).indexOf(title)}`;
      await invalid[title]?.(path);
      const service = await start();
      const headers = ['authorization', `Bearer ${await token(0, at(path))}`];
      const refused = await send(service.url, '/api/private', { headers });
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
      expect(refused.headers.has('www-authenticate')).toBe(false);
      expect(refused.text).not.toContain(path);
      await service.findLog(({ reason }) => reason === 'revocation_unknown');
      expect(await decide(service, 0, at(path))).toEqual([503]);
      expect(provider.requests(path)).toBe(1);
      const other = await fetch(`${service.url}/api/private`, {
        headers: { authorization: `Bearer ${await provider.sign()}` },
      });
      expect(other.status).toBe(200);
      const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
      const [, bytes] = /^process_resident_memory_bytes (\S+)/m.exec(metrics) ?? [];
      if (bytes !== undefined) expect(Number(bytes)).toBeLessThan(256 * 1024 * 1024);
    },
    20_000,
  );

  it('a list of another issuer at its own address → 503: each list counts for the issuer of the token', async () => {
    const lst = new StatusList([0], 2).compressStatusList();
    const list = await stranger.sign(
      { sub: at('/status/1', stranger), aud: undefined, exp: undefined, ttl: 60, status_list: { bits: 2, lst } },
      { header: { typ: 'statuslist+jwt' } },
    );
    stranger.serve('/status/1', (response) => void response.writeHead(200).end(list));
    const service = await start();
    expect(await decide(service, 0, at('/status/1', stranger))).toEqual([503]);
    expect(stranger.requests('/status/1')).toBe(1);
  });
});

it('the provider is unreachable for a while → the last list decides until it expires, then 503, then the new list', async () => {
  await publish('/status/away', [0, 1], { ttl: 3 });
  const service = await start();
  expect([await decide(service, 0, at('/status/away')), await decide(service, 1, at('/status/away'))]).toEqual([
    [200],
    [401],
  ]);
  provider.serve('/status/away', undefined);
  await vi.waitFor(async () => expect(await decide(service, 0, at('/status/away'))).toEqual([503]), {
    timeout: 15_000,
  });
  await publish('/status/away', [1, 0], { ttl: 3 });
  await vi.waitFor(async () => expect(await decide(service, 0, at('/status/away'))).toEqual([401]), {
    timeout: 15_000,
  });
  expect(await decide(service, 1, at('/status/away'))).toEqual([200]);
}, 40_000);

it('the gate as the proxy → 401 for a revoked token, and nothing reaches the upstream', async () => {
  await publish('/status/gate', [0, 1]);
  const upstream = await start({ STATUS_LISTS: '' });
  const rules = join(folder, 'rules.json');
  const issuers = { idp: { issuer: provider.issuer, audience: provider.audience } };
  await writeFile(rules, JSON.stringify({ issuers, rules: [{ id: 'all', path: '/**' }] }));
  const gate = await start({ ISSUER: '', IDP_AUDIENCE: '', UPSTREAM: upstream.url }, ['--rules', rules]);
  expect(await decide(gate, 0, at('/status/gate'), '/api/public')).toEqual([200]);
  const headers = ['authorization', `Bearer ${await token(1, at('/status/gate'))}`, 'x-request-id', 'refused'];
  expect((await send(gate.url, '/api/public', { headers })).status).toBe(401);
  await gate.findLog(({ reason }) => reason === 'revoked_token');
  await fetch(`${upstream.url}/api/public`, { headers: { 'x-request-id': 'last' } });
  await upstream.findLog(({ request_id: id }) => id === 'last');
  expect(upstream.logs.filter(({ request_id: id }) => id === 'refused')).toEqual([]);
});

it('no STATUS_LISTS → the claim is ignored', async () => {
  const service = await start({ STATUS_LISTS: '' });
  expect(await decide(service, 'x', 'nonsense')).toEqual([200]);
});

it.each(['http://status.example/', 'https://status.example/lists', 'https://status.example/a/../b/', 'nonsense/'])(
  'STATUS_LISTS=%s → 78',
  async (STATUS_LISTS) => {
    const error = await start({ STATUS_LISTS }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ServiceStartError);
    expect([(error as ServiceStartError).end.code, (error as ServiceStartError).stderr]).toEqual([
      78,
      expect.stringContaining('STATUS_LISTS'),
    ]);
  },
);
