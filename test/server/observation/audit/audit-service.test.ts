import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { useFolder } from '../../../support/folder.ts';
import { openGate } from '../../../support/gate-process.ts';
import { exchange, send } from '../../../support/http-client.ts';
import { listen } from '../../../support/listening.ts';
import { type OpenedService, openService } from '../../../support/open-service.ts';
import {
  runtime,
  runtimeArgs,
  type ServiceProcessOptions,
  ServiceStartError,
  startService,
} from '../../../support/service-process.ts';
import { useTestProvider } from '../../../support/test-provider.ts';
import { readEnvironment, variants } from '../../../support/variant-service.ts';

const [variant] = variants;
const provider = await useTestProvider();
const folder = useFolder();
let files = 0;
const services: OpenedService[] = [];
afterAll(() => Promise.all(services.map((service) => service.stop())));

type Line = Readonly<Record<string, unknown>>;
const newPath = (): string => join(folder, `audit-${files++}.jsonl`);
/** Every line must be JSON, and the last one complete. */
function read(path: string): readonly Line[] {
  const text = readFileSync(path, 'utf8');
  expect(text === '' || text.endsWith('\n')).toBe(true);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

async function start<T extends OpenedService = OpenedService>(
  environment: Record<string, string>,
  open: (options: ServiceProcessOptions) => Promise<T>,
  options: object = {},
): Promise<T> {
  if (variant === undefined) throw new Error('no variant');
  const settings = { ...readEnvironment(variant, provider), LOG_IDENTITY: 'plain', ...environment };
  const service = await open({ environment: settings, ...options });
  services.push(service);
  await service.findLog(({ event }) => event === 'keys_fetched');
  return service;
}
const bearer = async (claims = {}): Promise<readonly string[]> => [
  'Authorization',
  `Bearer ${await provider.sign(claims)}`,
];
const readyz = async ({ adminUrl = '' }: OpenedService) => {
  const { status, body } = await send(adminUrl, '/readyz');
  return { status, ...JSON.parse(body) };
};
const dropped = async ({ adminUrl = '' }: OpenedService): Promise<number> =>
  Number(/^portcullis_audit_lines_dropped_total (\d+)$/m.exec((await send(adminUrl, '/metrics')).text)?.[1]);
/** Limits the size of files that a process writes, in blocks of 512 bytes. */
const limited = (blocks: number) => ({
  runtime: ['sh', '-c', `ulimit -f ${blocks}; exec "$0" "$@"`, runtime, ...runtimeArgs],
});

describe('decisions of the service', () => {
  it('protected endpoints → a line each; other requests → none', async () => {
    const AUDIT_LOG = newPath();
    const service = await start({ AUDIT_LOG, LOG_GRANTS: 'none' }, openService);
    const headers = await bearer({ sub: 'alice', jti: 'x' });
    const admitted = await send(service.url, '/api/private-scoped', { headers });
    const refused = await send(service.url, '/api/private');
    for (const path of ['/api/public', '/docs', '/openapi.json', '/.well-known/oauth-protected-resource', '/none']) {
      await send(service.url, path, { headers });
    }
    await send(service.url, '/api/private', { method: 'POST', headers });
    await send(service.adminUrl ?? '', '/metrics');
    expect([admitted.status, refused.status]).toEqual([200, 401]);
    const [first, second, ...more] = read(AUDIT_LOG);
    expect(more).toEqual([]);
    expect(first).toMatchObject({
      ...{ event: 'decision', decision: 'admitted', method: 'GET', route: '/api/private-scoped', status: 200 },
      ...{ issuer: provider.issuer, sub: 'alice', scopes: ['read:messages'], scheme: 'Bearer', client_ip: '127.0.0.1' },
      ...{ host: `127.0.0.1:${service.port}`, jti_hash: expect.stringMatching(/^[\w-]{43}$/) },
    });
    expect(second).toMatchObject({
      decision: 'refused',
      reason: 'missing_credentials',
      status: 401,
      id: refused.headers.get('x-request-id'),
    });
    expect(statSync(AUDIT_LOG).mode & 0o777).toBe(0o600);
    await service.stop();
  });

  it('stdout → lines between the lines of the log', async () => {
    const service = await start({ AUDIT_LOG: 'stdout' }, startService);
    await send(service.url, '/api/private');
    await service.findLog(({ event }) => event === 'decision');
    await service.stop();
  });

  it.each([
    [
      'a path without a folder',
      { AUDIT_LOG: '/none/audit.jsonl', LOG_IDENTITY: 'off' },
      /AUDIT_LOG cannot be opened \(ENOENT\)/,
    ],
    ['a folder', { AUDIT_LOG: '/tmp', LOG_IDENTITY: 'off' }, /AUDIT_LOG cannot be opened \(EISDIR\)/],
    ['a hashed identity without a secret', { AUDIT_LOG: 'stdout', LOG_IDENTITY: '' }, /LOG_IDENTITY_SECRET: AUDIT_LOG/],
  ])('%s → exit status 78', async (_name, environment, message) => {
    const failure = await start(environment, openService).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ServiceStartError);
    expect(failure).toMatchObject({ end: { code: 78 }, stderr: expect.stringMatching(message) });
  });
});

describe('the file', () => {
  it('SIGHUP after a rotation → the new file; if it cannot be opened → the old one, and one error line', async () => {
    const AUDIT_LOG = newPath();
    const service = await start({ AUDIT_LOG }, openService);
    await send(service.url, '/api/private');
    renameSync(AUDIT_LOG, `${AUDIT_LOG}.1`);
    service.signal('SIGHUP');
    await service.findLog(({ event }) => event === 'audit_reopened');
    await expect.poll(() => service.logs.filter(({ event }) => event === 'audit_reopened').length).toBe(1);
    await send(service.url, '/api/private');
    expect([read(`${AUDIT_LOG}.1`), read(AUDIT_LOG)].map(({ length }) => length)).toEqual([1, 1]);
    renameSync(folder, `${folder}-moved`);
    service.signal('SIGHUP');
    const failures = () => service.logs.filter(({ event }) => event === 'audit_reopen_failed');
    await expect.poll(() => failures().length).toBe(1);
    renameSync(`${folder}-moved`, folder);
    await send(service.url, '/api/private');
    expect(read(AUDIT_LOG)).toHaveLength(2);
    expect(failures().every(({ level }) => level === 'error')).toBe(true);
    await service.stop();
  });

  it('block, a file that is full → 503 until a rotation; lines complete, none lost', async () => {
    const AUDIT_LOG = newPath();
    const service = await start({ AUDIT_LOG }, startService, limited(8));
    const headers = await bearer({ sub: 'alice' });
    const ids: string[] = [];
    let refused: Awaited<ReturnType<typeof send>> | undefined;
    for (let i = 0; i < 100; i++) {
      const response = await send(service.url, '/api/private', { headers: [...headers, 'X-Request-Id', `n-${i}`] });
      if (response.status === 200) ids.push(`n-${i}`);
      else refused = response;
    }
    expect(refused?.status).toBe(503);
    expect(refused?.headers.get('retry-after')).toBe('5');
    expect(refused?.text).toContain('temporarily_unavailable');
    // Public endpoints do not need a token.
    expect((await send(service.url, '/api/public')).status).toBe(200);
    expect(await readyz(service)).toMatchObject({ status: 200, ready: true, degraded: ['audit'] });
    expect(service.logs.filter(({ event }) => event === 'audit_failed')[0]).toMatchObject({ level: 'error' });
    // Each second the service tries to write, and removes what was not a complete line.
    await expect.poll(() => readFileSync(AUDIT_LOG, 'utf8').endsWith('\n')).toBe(true);
    renameSync(AUDIT_LOG, `${AUDIT_LOG}.1`);
    service.signal('SIGHUP');
    await expect.poll(async () => (await readyz(service)).degraded).toBeUndefined();
    expect((await send(service.url, '/api/private', { headers })).status).toBe(200);
    const lines = [...read(`${AUDIT_LOG}.1`), ...read(AUDIT_LOG)];
    const written = lines.flatMap(({ request_id }) => request_id ?? []);
    expect(written.toSorted()).toEqual(ids.toSorted());
    expect(lines.filter(({ reason }) => reason === 'audit_unavailable')).toEqual([]);
    expect(await dropped(service)).toBe(0);
    await service.stop();
  });

  it('SIGKILL under load → complete lines, one for each response', async () => {
    const AUDIT_LOG = newPath();
    const service = await start({ AUDIT_LOG }, startService);
    const [, authorization = ''] = await bearer();
    const request = `GET /api/private HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n`;
    const bytes = `${`${request}\r\n`.repeat(199)}${request}Connection: close\r\n\r\n`;
    const load = Array.from({ length: 20 }, () => exchange(service.port, bytes).catch(() => ''));
    await expect.poll(() => statSync(AUDIT_LOG).size, { interval: 1 }).toBeGreaterThan(0);
    await service.kill();
    const received = (await Promise.all(load)).join('').match(/HTTP\/1\.1 200/g)?.length ?? 0;
    expect(read(AUDIT_LOG).length).toBeGreaterThanOrEqual(received);
  });
});

it('a closed pipe → a failed write, 503', async () => {
  const script = join(folder, 'closed.sh');
  writeFileSync(script, 'exec "$@" 2> >(sleep 0.5)\n');
  const environment = { AUDIT_LOG: 'stderr' };
  const service = await start(environment, startService, { runtime: ['bash', script, runtime, ...runtimeArgs] });
  const headers = await bearer();
  expect((await send(service.url, '/api/private', { headers })).status).toBe(200);
  const status = async () => (await send(service.url, '/api/private', { headers })).status;
  await expect.poll(status).toBe(503);
  expect(service.logs.find(({ event }) => event === 'audit_failed')).toMatchObject({ problem: 'EPIPE' });
  await service.stop();
  expect(service.logs.find(({ event }) => event === 'audit_lines_lost')).toMatchObject({ level: 'error', lines: 1 });
});

describe('decisions of the gate', () => {
  const rules = () => ({
    issuers: { main: { issuer: provider.issuer, audience: provider.audience } },
    rules: [
      { id: 'public', path: '/open', access: 'open' },
      { id: 'never', path: '/deny', access: 'deny' },
      { id: 'report', path: '/report', mode: 'report', scopes: ['write'] },
      { id: 'orders', path: '/orders', scopes: ['read:messages'] },
    ],
  });

  it('block on a full disk → 503 for rules that need a token; open, deny and report rules decide as before', async () => {
    const gate = await openGate(provider, rules(), {
      AUDIT_LOG: '/dev/full',
      LOG_IDENTITY: 'off',
      TRUST_PROXY: '127.0.0.1',
    });
    await gate.findLog(({ event }) => event === 'keys_fetched');
    const headers = await bearer();
    const status = async (path: string) => (await gate.ask({ path, headers })).status;
    expect(await status('/orders')).toBe(200);
    expect(await Promise.all(['/orders', '/open', '/deny', '/report'].map(status))).toEqual([503, 200, 403, 200]);
    await gate.stop();
  });

  it('a rule with mcp → the scopes of the token, and the path', async () => {
    const AUDIT_LOG = newPath();
    const mcp = { tools: { 'delete-*': { scopes: ['write'] }, '*': {} }, trustHeaders: true };
    const rule = { id: 'mcp', path: '/mcp', scopes: ['read'], mcp };
    const settings = { AUDIT_LOG, LOG_IDENTITY: 'off', TRUST_PROXY: '127.0.0.1' };
    const gate = await openGate(provider, { ...rules(), rules: [rule] }, settings);
    const headers = [
      ...(await bearer({ scope: 'read write other' })),
      ...['MCP-Protocol-Version', '2026-07-28', 'Mcp-Method', 'tools/call'],
    ];
    for (const name of ['delete-all', 'list']) {
      await gate.ask({ path: '/mcp', method: 'POST', headers: [...headers, 'Mcp-Name', name] });
    }
    const lines = read(AUDIT_LOG).map(({ decision, scopes, path }) => [decision, scopes, path]);
    const all = ['read', 'write', 'other'];
    expect(lines).toEqual([
      ['admitted', all, '/mcp'],
      ['admitted', all, '/mcp'],
    ]);
    await gate.stop();
  });

  it('as the proxy → the line before the request is forwarded', async () => {
    const AUDIT_LOG = newPath();
    const seen: number[] = [];
    const upstream = createServer((_, response) => {
      seen.push(read(AUDIT_LOG).length);
      response.end('ok');
    });
    const { origin: UPSTREAM, close } = await listen(upstream);
    const gate = await openGate(provider, rules(), { AUDIT_LOG, LOG_IDENTITY: 'off', UPSTREAM });
    await gate.findLog(({ event }) => event === 'keys_fetched');
    expect((await send(gate.url, '/orders', { headers: await bearer() })).status).toBe(200);
    expect((await send(gate.url, '/orders')).status).toBe(401);
    expect(seen).toEqual([1]);
    expect(read(AUDIT_LOG)).toMatchObject([
      { rule: 'orders', decision: 'admitted' },
      { rule: 'orders', decision: 'refused', reason: 'missing_credentials', status: 401 },
    ]);
    await gate.stop();
    await close();
  });
});
