import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, it, onTestFinished, vi } from 'vitest';
import { createHttpClient } from '../../../src/core/outbound/http-client.ts';
import { createOutbound } from '../../../src/core/outbound/outbound.ts';
import type { ProviderError } from '../../../src/core/outbound/provider-error.ts';
import { version } from '../../../src/core/version.ts';
import { findFreePort } from '../../../tools/shared/network.js';
import { openRawServers, respondWith } from '../../support/raw-provider.ts';
import { createTestCertificates } from '../../support/tls.ts';

const limits = { timeoutSeconds: 5, maxBytes: 64 * 1024 };
const certificates = createTestCertificates();
const raw = openRawServers();
afterAll(raw.close);

/** A provider that responds to each request with these bytes, and then does this. */
async function startProvider(
  response: Buffer | string,
  { after, validity, heads = [] }: ProviderOptions = {},
): Promise<{ readonly port: number; readonly ca: string }> {
  const certificate = await (validity === undefined ? certificates : createTestCertificates(validity));
  const respond = (head: string) => {
    heads.push(head);
    return response;
  };
  const port = await raw.startProvider(respond, { certificate, ...(after && { after }) });
  return { port, ca: certificate.ca };
}

interface ProviderOptions {
  readonly after?: 'end' | 'lose';
  readonly validity?: { readonly from: number; readonly to: number };
  readonly heads?: string[];
}

const startProxy = (status = 200): Promise<number> => raw.startProxy(() => status);

const json = '{"keys":[]}';
const gzip = 'content-encoding: gzip';

type Row = [title: string, response: Buffer | string, expected: string, options?: ProviderOptions];
// More are in test/catalogue/provider-faults.ts.
const rows: Row[] = [
  ['a reused connection that gets no byte', respondWith(json), 'read', { after: 'lose' }],
  ['x-gzip', respondWith(gzipSync(json), 'Content-Encoding: X-GZip'), 'read'],
  ['identity', respondWith(json, 'content-encoding: identity'), 'read'],
  [
    'gzip with a byte at its end',
    respondWith(Buffer.concat([gzipSync(json), Buffer.from([0])]), gzip),
    'bad_coding gzip',
  ],
  ['no gzip', respondWith(json, gzip), 'bad_coding gzip'],
  ['two codings', respondWith(gzipSync(gzipSync(json)), 'content-encoding: gzip, gzip'), 'bad_coding undefined'],
  ['a certificate of tomorrow', respondWith(json), 'tls CERT_NOT_YET_VALID', { validity: { from: 1, to: 2 } }],
];

/** Sends three requests, one after the other, the second with a form; `read`, or kind and detail of the first error. */
async function fetchThrice(url: string, options: Parameters<typeof createOutbound>[0]): Promise<string> {
  const outbound = createOutbound({ environment: {}, ...options });
  onTestFinished(outbound.close);
  try {
    await outbound.fetchJson(url, limits);
    await outbound.postForm(url, { body: 'token=a' }, limits);
    await outbound.fetchJson(url, limits);
    return 'read';
  } catch (error) {
    const { kind, detail } = error as ProviderError; // what each row compares
    return detail === undefined && kind !== 'bad_coding' ? kind : `${kind} ${detail}`;
  }
}

it.each(rows)('%s, directly and through a proxy → its own cause', async (_, response, expected, options) => {
  const { port, ca } = await startProvider(response, options);
  const url = `https://localhost:${port}/keys`;
  expect(await fetchThrice(url, { ca })).toBe(expected);
  const environment = { HTTPS_PROXY: `http://127.0.0.1:${await startProxy()}` };
  expect(await fetchThrice(url, { ca, environment })).toBe(expected);
});

it('a request, directly and through a proxy → the same headers, with the version of package.json', async () => {
  const heads: string[] = [];
  const { port, ca } = await startProvider(respondWith(json), { heads });
  const environment = { HTTPS_PROXY: `http://127.0.0.1:${await startProxy()}` };
  for (const options of [{ ca }, { ca, environment }]) await fetchThrice(`https://localhost:${port}/keys`, options);
  const [get, post, ...others] = new Set(heads);
  expect(others).toEqual([]);
  for (const head of [get, post]) {
    expect(head).toContain('\r\naccept: application/json, application/jwk-set+json, */*;q=0.1\r\n');
    expect(head).toContain(`user-agent: portcullis/${version}\r\n`);
  }
  expect(JSON.parse(readFileSync('package.json', 'utf8'))).toMatchObject({ version });
});

it.each([
  [407, 'proxy_credentials 407', /user and password/],
  [403, 'proxy 403', /at the proxy/],
  [502, 'proxy 502', /NO_PROXY/],
])('a proxy that responds with %i → %s', async (status, expected, fix) => {
  const { port, ca } = await startProvider(respondWith(json));
  const environment = { HTTPS_PROXY: `http://user:s3cret@127.0.0.1:${await startProxy(status)}` };
  const outbound = createOutbound({ ca, environment });
  onTestFinished(outbound.close);
  const error: ProviderError = await outbound.fetchJson(`https://localhost:${port}/`, limits).then(
    () => expect.unreachable(),
    (thrown: ProviderError) => thrown,
  );
  expect(`${error.kind} ${error.detail}`).toBe(expected);
  expect(error.fix).toMatch(fix);
  expect(error.message).not.toContain('s3cret');
});

it('close while a proxy is silent → closed; a proxy that is down → proxy with its code', async () => {
  const { port, ca } = await startProvider(respondWith(json));
  const silent = createServer();
  const outbound = createOutbound({ ca, environment: { HTTPS_PROXY: `127.0.0.1:${await raw.listen(silent)}` } });
  const [failed] = await Promise.all([
    outbound.fetchJson(`https://localhost:${port}/`, limits).catch((error: ProviderError) => error.kind),
    new Promise((resolve) => silent.once('connection', resolve)).then(outbound.close),
  ]);
  expect(failed).toBe('closed');
  const environment = { HTTPS_PROXY: `127.0.0.1:${await findFreePort()}` };
  expect(await fetchThrice(`https://localhost:${port}/`, { ca, environment })).toBe('proxy ECONNREFUSED');
});

it('a silent proxy → proxy after 3 s, and no connection', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const silent = createServer();
  const outbound = createOutbound({ environment: { HTTPS_PROXY: `127.0.0.1:${await raw.listen(silent)}` } });
  onTestFinished(outbound.close);
  const failure = outbound.fetchJson('https://[::1]:1/', limits).catch((error: ProviderError) => error.message);
  const [socket] = await once(silent, 'connection');
  const [head] = await once(socket, 'data');
  expect(String(head)).toMatch(/^CONNECT \[::1\]:1 HTTP/);
  vi.advanceTimersByTime(3000);
  expect(await failure).toContain('(ETIMEDOUT)');
  await once(socket.resume(), 'close');
});

it('a proxy over TLS, with credentials, and a client certificate → a response', async () => {
  const { cert, key, ca } = await certificates;
  const heads: string[] = [];
  const { port } = await startProvider(respondWith(json));
  const target = await startProxy();
  const proxy = createTlsServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (socket) => {
    heads.push(socket.authorized ? 'trusted' : String(socket.getPeerCertificate().subject !== undefined));
    socket.once('data', (head) => {
      heads.push(head.toString());
      const onward = connect(target, '127.0.0.1', () => onward.write(head));
      socket.pipe(onward).pipe(socket);
    });
  });
  const environment = { HTTPS_PROXY: `https://us%20er:s3cret@localhost:${await raw.listen(proxy)}` };
  const url = `https://localhost:${port}/keys`;
  expect(await fetchThrice(url, { ca, environment, identity: `${cert}\n${key}` })).toBe('read');
  expect(heads[0]).toBe('true');
  expect(heads[1]).toContain(`proxy-authorization: Basic ${Buffer.from('us er:s3cret').toString('base64')}\r\n`);
});

it('plain http through a proxy → a response', async () => {
  const port = await raw.listen(
    createServer((socket) => void socket.once('data', () => socket.end(respondWith(json)))),
  );
  const environment = { HTTP_PROXY: `http://127.0.0.1:${await startProxy()}` };
  expect(await fetchThrice(`http://127.0.0.1:${port}/`, { insecure: true, environment })).toBe('read');
});

it('Bun, behind a proxy → its own fetch, with the certificate', async () => {
  vi.resetModules();
  vi.doMock('../../../src/core/platform.ts', async (original) => ({ ...(await original<object>()), onBun: true }));
  const fetch = vi.fn(async (_url: string, _init?: object) => Response.json({ keys: [] }));
  vi.stubGlobal('fetch', fetch);
  onTestFinished(() => {
    vi.doUnmock('../../../src/core/platform.ts');
    vi.unstubAllGlobals();
  });
  const { createOutbound: open } = await import('../../../src/core/outbound/outbound.ts');
  const { ca } = await certificates;
  const environment = { HTTPS_PROXY: 'http://127.0.0.1:1' };
  for (const options of [{ ca }, {}]) {
    const outbound = open({ ...options, environment });
    await outbound.fetchJson('https://idp.example/', limits);
    outbound.close();
  }
  expect(fetch.mock.calls.map(([, init]) => init)).toMatchObject([
    { tls: { ca: expect.arrayContaining([ca]) } },
    { method: 'GET' },
  ]);
});

it('any response → status, headers and body, a redirect too', async () => {
  const { port, ca } = await startProvider('HTTP/1.1 302 x\r\nlocation: https://a/\r\ncontent-length: 2\r\n\r\nno');
  const outbound = createOutbound({ ca, environment: {} });
  onTestFinished(outbound.close);
  const { status, headers, body } = await outbound.fetchAny(`https://localhost:${port}/`, {}, limits);
  expect([status, headers.get('location'), body.toString()]).toEqual([302, 'https://a/', 'no']);
});

it('a client certificate without an authority → the authorities of Node', async () => {
  const { port } = await startProvider(respondWith(json));
  const { cert, key } = await certificates;
  const client = createHttpClient({ environment: {}, identity: `${cert}${key}` });
  onTestFinished(client.close);
  await expect(
    client.fetch(`https://localhost:${port}/keys`, { method: 'GET', headers: {} } as never),
  ).rejects.toThrow();
});
