import { createConnection, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, exchange, openRaw, type RawConnection, readStatuses, send } from '../../support/http-client.ts';
import { listen } from '../../support/listening.ts';
import type { OpenedService } from '../../support/open-service.ts';
import { passStart } from '../../support/pass-start.ts';
import { hashToken, makeProofKey, mintProof, thumbprintOf } from '../../support/proofs.ts';
import type { LogLine, ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import {
  bearer,
  findVariant,
  openVariant,
  startInVain,
  startVariant,
  variants,
} from '../../support/variant-service.ts';

let provider: TestProvider;
/** Never answers. */
let hanging: TestProvider;

beforeAll(async () => {
  [provider, hanging] = await Promise.all([startTestProvider(), startTestProvider()]);
  hanging.inject('hang');
});
afterAll(() => Promise.all([provider.close(), hanging.close()]));

function startA(at: TestProvider, environment: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  return startVariant(findVariant('a'), at, environment);
}

function admin({ adminUrl }: OpenedService, path: string): Promise<Answer> {
  if (adminUrl === undefined) throw new Error('There is no admin listener.');
  return send(adminUrl, path);
}

interface Metric {
  readonly type: string;
  /** By the label part. */
  readonly samples: ReadonlyMap<string, number>;
}

/** Parses the text format of Prometheus (0.0.4), and refuses whatever is not in it. */
function parseMetrics(text: string): ReadonlyMap<string, Metric> {
  const families = new Map<string, { type: string; samples: Map<string, number> }>();
  const lines = text.split('\n');
  expect(lines.pop()).toBe('');
  let name = '';
  for (const line of lines) {
    const [, help] = /^# HELP ([a-z_][a-z0-9_]*) \S.*$/.exec(line) ?? [];
    const [, typed, type] = /^# TYPE ([a-z_][a-z0-9_]*) (counter|gauge|histogram)$/.exec(line) ?? [];
    const [, series = '', labels, value] =
      /^([a-z_][a-z0-9_]*)((?:\{[a-z_]+="[^"\\\n]*"(?:,[a-z_]+="[^"\\\n]*")*\})?) ([\d.e+-]+|\+Inf)$/.exec(line) ?? [];
    if (help !== undefined) {
      expect(families.has(help), line).toBe(false);
      name = help;
    } else if (type !== undefined) {
      expect(typed, line).toBe(name);
      families.set(name, { type, samples: new Map() });
    } else {
      const family = families.get(name);
      expect(labels, line).toBeDefined();
      expect(series.replace(/_(?:bucket|sum|count)$/, family?.type === 'histogram' ? '' : '$&'), line).toBe(name);
      family?.samples.set(`${series.slice(name.length)}${labels}`, Number(value));
    }
  }
  return families;
}

async function readMetrics(service: OpenedService): Promise<ReadonlyMap<string, Metric>> {
  return parseMetrics((await admin(service, '/metrics')).body);
}

describe('listeners', () => {
  let service: OpenedService;

  beforeAll(async () => {
    service = await openVariant(findVariant('a'), provider);
  });
  afterAll(() => service.stop());

  it('PORT=0, ADMIN_PORT=0 → free ports, named in the log', async () => {
    const line = await service.findLog(({ event }) => event === 'listening');
    expect(line).toMatchObject({ url: service.url, admin_url: service.adminUrl, level: 'info' });
    expect(service.url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d+$/);
    expect((await send(service.url, '/api/public')).status).toBe(200);
  });

  it('/healthz and /readyz → 200; nothing else on the admin port', async () => {
    expect(await admin(service, '/healthz')).toMatchObject({ status: 200, json: { status: 'ok' } });
    await service.findLog(({ event }) => event === 'keys_fetched');
    expect(await admin(service, '/readyz')).toMatchObject({
      status: 200,
      json: { ready: true, checks: { keys: 'ok' } },
    });
    expect((await admin(service, '/api/private')).status).toBe(404);
  });

  it('/metrics → Prometheus text with every family, whose counts move', async () => {
    const { headers } = await admin(service, '/metrics');
    expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    const before = await readMetrics(service);
    await send(service.url, '/api/public');
    await send(service.url, '/api/private');
    await send(service.url, '/api/private', { headers: bearer('x.y.z') });
    const good = bearer(await provider.sign());
    for (let time = 0; time < 3; time++) await send(service.url, '/api/private', { headers: good });
    await send(service.url, `/nowhere-${'x'.repeat(20)}`);
    const after = await readMetrics(service);
    const moved = (name: string, labels: string): number =>
      (after.get(name)?.samples.get(labels) ?? 0) - (before.get(name)?.samples.get(labels) ?? 0);
    expect(moved('portcullis_requests_total', '{route="/api/public",status="200",scheme="none",issuer=""}')).toBe(1);
    expect(
      moved(
        'portcullis_requests_total',
        `{route="/api/private",status="200",scheme="Bearer",issuer="${provider.issuer}"}`,
      ),
    ).toBe(3);
    expect(moved('portcullis_requests_total', '{route="/api/private",status="401",scheme="none",issuer=""}')).toBe(1);
    // What a refused call had sent counts too: `none` is a call without a scheme that is known here.
    expect(moved('portcullis_requests_total', '{route="/api/private",status="401",scheme="Bearer",issuer=""}')).toBe(1);
    expect(moved('portcullis_requests_total', '{route="unmatched",status="404",scheme="none",issuer=""}')).toBe(1);
    expect(moved('portcullis_refusals_total', '{reason="missing_credentials",issuer=""}')).toBe(1);
    expect(moved('portcullis_refusals_total', '{reason="malformed_encoding",issuer=""}')).toBe(1);
    expect(moved('portcullis_request_seconds', '_count{route="/api/private"}')).toBe(5);
    expect(moved('portcullis_request_seconds', '_bucket{route="/api/private",le="+Inf"}')).toBe(5);
    expect(moved('portcullis_request_seconds', '_count{route="unmatched"}')).toBe(1);
    expect(moved('portcullis_token_cache_misses_total', '')).toBe(3);
    expect(moved('portcullis_token_cache_hits_total', '')).toBe(1);
    expect(moved('portcullis_token_cache_entries', '')).toBe(1);
    expect(moved('portcullis_token_cache_bytes', '')).toBeGreaterThan(0);
    const issuer = `issuer="${provider.issuer}"`;
    expect(after.get('portcullis_key_fetches_total')?.samples.get(`{${issuer},outcome="ok"}`)).toBe(1);
    expect(after.get('portcullis_key_set_age_seconds')?.samples.get(`{${issuer}}`)).toBeGreaterThan(0);
    expect(after.get('portcullis_key_fetch_seconds_total')?.samples.get(`{${issuer}}`)).toBeGreaterThan(0);
    const families = [
      ...['portcullis_key_set_keys', 'portcullis_key_set_usable', 'portcullis_replay_store_entries'],
      ...['portcullis_malformed_requests_total', 'nodejs_eventloop_lag_p99_seconds'],
      ...['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds'],
    ];
    expect([...after.keys()]).toEqual(expect.arrayContaining(families));
    expect(JSON.stringify([...after.values()].map(({ samples }) => [...samples]))).not.toContain('nowhere');
  });

  it('bytes that are not HTTP → counted', async () => {
    await exchange(service.port, 'nonsense\r\n\r\n');
    const malformed = (await readMetrics(service)).get('portcullis_malformed_requests_total');
    expect(malformed?.samples.get('{status="400"}')).toBe(1);
  });

  it.each([
    ['PROXY protocol', 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['PROXY protocol', '\r\n\r\n\0\r\nQUIT\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('%s → one log line with the fix, however often', async (protocol, bytes) => {
    for (let i = 0; i < 2; i++) await exchange(service.port, bytes);
    const isIts = (line: LogLine): boolean => line.event === 'protocol_not_served' && line['protocol'] === protocol;
    const line = { level: 'warn', peer: expect.any(String), fix: expect.stringMatching(/\S/) };
    await expect.poll(() => service.logs.filter(isIts)).toMatchObject([line]);
  });
});

it('the log: one line a request with id, route, status, reason and duration; nothing secret in any', async () => {
  const service = await openVariant(findVariant('a'), provider);
  await passStart();
  const key = makeProofKey();
  const tokens = [await provider.sign(), await provider.sign({ cnf: { jkt: thumbprintOf(key.jwk) } })] as const;
  const htu = `${service.url}/api/private`;
  const iat = Math.floor(Date.now() / 1000);
  const proof = mintProof({ jti: 'a', htm: 'GET', htu, iat, ath: hashToken(tokens[1]) }, { key });
  const dpop = ['Authorization', `DPoP ${tokens[1]}`, 'DPoP', proof];
  const cookie = 'session=a-secret-cookie';
  const calls = [
    ['/api/public', [], 200, undefined],
    ['/api/private?secret-query=1', [...bearer(tokens[0]), 'Cookie', cookie], 200, undefined],
    ['/api/private', dpop, 200, undefined],
    ['/api/private', dpop, 401, 'proof_replayed'],
    ['/api/private', [], 401, 'missing_credentials'],
    ['/api/private', ['Authorization', 'Basic c2VjcmV0LWJhc2lj'], 401, 'unsupported_scheme'],
    ['/secret-path', [], 404, undefined],
  ] as const;
  const ids: (string | undefined)[] = [];
  for (const [path, headers, status] of calls) {
    const answer = await send(service.url, path, { headers });
    expect(answer.status).toBe(status);
    ids.push(answer.headers.get('x-request-id'));
  }
  const entries = (await readMetrics(service)).get('portcullis_replay_store_entries');
  expect(entries?.samples.get('')).toBe(1);
  expect(await service.stop()).toBe(0);

  const lines = service.logs.filter(({ event }) => event === 'request');
  expect(lines).toHaveLength(calls.length);
  for (const [index, [path, , status, reason]] of calls.entries()) {
    const line: LogLine | undefined = lines[index];
    const route = path.startsWith('/api') ? path.replace(/\?.*/, '') : 'unmatched';
    expect(line).toMatchObject({ id: expect.stringMatching(/^\S+$/), method: 'GET', route, status, level: 'info' });
    expect(line?.['reason']).toBe(reason);
    expect(line?.['ms']).toEqual(expect.any(Number));
    expect(line?.time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    if (status >= 400) expect(line?.['id']).toBe(ids[index]);
  }
  expect(new Set(lines.map((line) => line['id'])).size).toBe(calls.length);
  const log = JSON.stringify(service.logs);
  expect(log).not.toMatch(/secret|c2VjcmV0|authorization|cookie|Bearer |Basic /i);
  for (const text of [...tokens, proof, ...tokens.map((token) => token.split('.')[2] ?? '')]) {
    expect(log).not.toContain(text);
  }
});

describe('an unavailable address', () => {
  it.each(['PORT', 'ADMIN_PORT'])('%s is taken → says so and exits 69', async (setting) => {
    const { port, close } = await listen(createServer());
    const { end, stderr } = await startInVain(startA(provider, { [setting]: String(port) }));
    await close();
    expect(end).toEqual({ code: 69, signal: null });
    expect(stderr).toBe(
      `portcullis: cannot listen on 127.0.0.1:${port}; set ${setting} to another port, or stop the program that uses it.\n`,
    );
  });

  it('HOST is another loopback address → listens there alone', async () => {
    const service = await openVariant(findVariant('a'), provider, { HOST: '127.0.0.2', ADMIN_PORT: 'off' });
    expect(service.url).toBe(`http://127.0.0.2:${service.port}`);
    expect(service.adminUrl).toBeUndefined();
    expect((await send(service.url, '/api/public')).status).toBe(200);
    await expect(send(`http://127.0.0.1:${service.port}`, '/api/public')).rejects.toThrow('ECONNREFUSED');
    const line = await service.findLog(({ event }) => event === 'listening');
    expect(line).not.toHaveProperty('admin_url');
    expect(await service.stop()).toBe(0);
  });
});

/** A connection with one request that was answered and one that is not complete yet. */
async function hold(service: ServiceProcess): Promise<RawConnection> {
  const connection = openRaw(service.port);
  const request = 'GET /api/public HTTP/1.1\r\nHost: api.example.test\r\n';
  connection.write(`${request}\r\n${request}`);
  await connection.receive(/"Public endpoint.*\}/);
  return connection;
}

/** A call that waits for the keys of the provider that never answers, and has arrived. */
async function callInVain(service: ServiceProcess): Promise<RawConnection> {
  const connection = openRaw(service.port);
  const lines = ['Host: api.example.test', `Authorization: Bearer ${await hanging.sign()}`];
  connection.write(`GET /api/private HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  await expect.poll(async () => (await admin(service, '/metrics')).body).toMatch(/^portcullis_requests_in_flight 1$/m);
  return connection;
}

/** Calls, each on a connection of its own, until one gets no answer; the statuses of those that did. */
async function callUntilRefused(service: ServiceProcess): Promise<{ answered: number[]; error: string }> {
  const answered: number[] = [];
  for (let call = 0; call < 100; call++) {
    try {
      answered.push((await send(service.url, '/api/public')).status);
    } catch (error) {
      return { answered, error: String(error) };
    }
  }
  throw new Error(`The listener still takes connections after ${answered.length} calls.`);
}

// By itself, for a caller that is kept from its own sockets sends too late, and rightly gets nothing.
describe('the end in mid-traffic', () => {
  it('requests that continue along kept-alive connections → each sent one gets a response', async () => {
    const service = await startA(provider);
    const connections = Array.from({ length: 16 }, () => createConnection(service.port, '127.0.0.1'));
    let sent = 0;
    let answered = 0;
    const busy: Socket[] = [];
    const callers = connections.map(
      (connection) =>
        new Promise<void>((resolve) => {
          let calls = 0;
          const call = () => {
            sent++;
            if (++calls === 2) busy.push(connection);
            connection.write('GET /api/public HTTP/1.1\r\nHost: api.example.test\r\n\r\n');
          };
          connection.on('connect', call);
          connection.on('data', (received) => {
            answered++;
            // A client that is told that this was the last answer sends no more.
            if (/^connection: close\r$/im.test(received.toString())) connection.end();
            else call();
          });
          connection.on('error', () => {});
          connection.on('close', () => resolve());
        }),
    );
    await expect.poll(() => busy.length).toBe(connections.length);
    expect(await service.stop()).toBe(0);
    await Promise.all(callers);
    expect(answered).toBe(sent);
  });

  it('requests that came while the process hung, along old connections and new ones → all get a response', async () => {
    const service = await startA(provider);
    const call = 'GET /api/public HTTP/1.1\r\nHost: a\r\n\r\n';
    const old = Array.from({ length: 4 }, () => openRaw(service.port));
    for (const connection of old) connection.write(call);
    await Promise.all(old.map((connection) => connection.receive(/"Public endpoint/)));
    service.signal('SIGSTOP');
    const all = [...old, ...Array.from({ length: 4 }, () => openRaw(service.port))];
    for (const connection of all) connection.write(call);
    // The system takes what comes meanwhile, for longer than idle connections are left alone.
    await new Promise((resolve) => setTimeout(resolve, 300));
    service.signal('SIGTERM');
    service.signal('SIGCONT');
    const statuses = await Promise.all(all.map(async ({ closed }) => readStatuses(await closed)));
    expect(statuses).toEqual(all.map((_, index) => (index < old.length ? [200, 200] : [200])));
  });
});

describe.concurrent('the end', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    '%s → finishes what is there, accepts no more, says so, exits 0',
    async (name) => {
      const service = await startA(hanging);
      const idle = openRaw(service.port);
      idle.write('GET /api/public HTTP/1.1\r\nHost: a\r\n\r\n');
      await idle.receive(/"Public endpoint/);
      const held = await hold(service);
      const waiting = await callInVain(service);
      service.signal(name);
      await service.findLog(({ event }) => event === 'shutting_down');
      // What is on its way as the listener closes is still taken, and answered.
      const { answered, error } = await callUntilRefused(service);
      expect(answered).toEqual(answered.map(() => 200));
      // Reset rather than refused is a call that came between the last look and the close.
      expect(error).toMatch(/ECONNREFUSED|ECONNRESET/);
      expect(await admin(service, '/readyz')).toMatchObject({
        status: 503,
        json: { ready: false, checks: { shutdown: 'in progress' } },
      });
      expect((await admin(service, '/healthz')).status).toBe(200);
      expect(readStatuses(await idle.closed)).toEqual([200]);
      held.write('\r\n');
      expect(readStatuses(await held.closed)).toEqual([200, 200]);
      expect(readStatuses(await waiting.closed)).toEqual([503]);
      expect(await service.ended).toEqual({ code: 0, signal: null });
      expect(service.stderr).toBe('');
    },
  );

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('a second %s → exits at once with %i', async (name, code) => {
    const service = await startA(provider);
    const held = await hold(service);
    service.signal(name);
    await service.findLog(({ event }) => event === 'shutting_down');
    service.signal(name);
    expect(await service.ended).toEqual({ code, signal: null });
    expect(readStatuses(await held.closed)).toEqual([200]);
  });

  it('a client that never finishes its request → cut off, exit 0', async () => {
    const service = await startA(provider);
    const held = await hold(service);
    expect(await service.stop()).toBe(0);
    expect([[200], [200, 408]]).toContainEqual(readStatuses(await held.closed));
  });

  it.each(variants)('variant $name, nothing in flight → exit 0, last line written', async (variant) => {
    const service = await startVariant(variant, provider);
    await send(service.url, '/api/public');
    // The first fetch is in flight too, until it is done.
    await service.findLog(({ event }) => event === 'keys_fetched');
    expect(await service.stop()).toBe(0);
    expect(service.logs.some(({ event }) => event === 'request')).toBe(true);
    expect(service.logs.at(-1)?.event).toBe('shutting_down');
    expect(service.stderr).toBe('');
  });
});

it('a provider that never responds → the service listens and serves open endpoints', async () => {
  const service = await openVariant(findVariant('a'), hanging);
  expect((await send(service.url, '/api/public')).status).toBe(200);
  expect((await admin(service, '/readyz')).status).toBe(503);
  expect(await service.stop()).toBe(0);
});
