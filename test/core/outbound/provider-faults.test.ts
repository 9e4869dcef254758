import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createHttpClient } from '../../../src/core/outbound/http-client.ts';
import { createOutbound } from '../../../src/core/outbound/outbound.ts';
import { type ProviderError, toProviderError } from '../../../src/core/outbound/provider-error.ts';
import { version } from '../../../src/core/version.ts';
import { findFreePort } from '../../../tools/shared/network.js';
import { createTestCertificates } from '../../support/tls.ts';

const limits = { timeoutSeconds: 5, maxBytes: 64 * 1024 };
const certificates = createTestCertificates();
const sockets = new Set<Socket>();

/** Listens on a free loopback port until the test ends. */
async function listen(server: Server): Promise<number> {
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { readonly port: number }).port; // a TCP server
}

/** A provider that responds to each request with these bytes, and then does this. */
async function startProvider(
  response: Buffer | string,
  { after = 'keep', validity, heads = [] }: ProviderOptions = {},
): Promise<{ readonly port: number; readonly ca: string }> {
  const { cert, key, ca } = await (validity === undefined ? certificates : createTestCertificates(validity));
  const server = createTlsServer({ cert, key }, (socket) => {
    socket.on('error', () => socket.destroy());
    let answered = 0;
    socket.on('data', (bytes) => {
      heads.push(bytes.toString());
      if (after === 'lose' && answered++ > 0) return void socket.destroy();
      socket.write(response);
      if (after === 'end') socket.end();
    });
  });
  return { port: await listen(server), ca };
}

interface ProviderOptions {
  readonly after?: 'keep' | 'end' | 'lose';
  readonly validity?: { readonly from: number; readonly to: number };
  readonly heads?: string[];
}

/** A proxy that responds to CONNECT with this status, and passes bytes on with 200. */
const startProxy = (status = 200): Promise<number> =>
  listen(
    createServer((client) => {
      client.once('data', (head) => {
        const [, port] = /^CONNECT [^ ]+:(\d+) HTTP\/1\.1\r\n/.exec(head.toString()) ?? [];
        if (status !== 200) return void client.end(`HTTP/1.1 ${status} x\r\ncontent-length: 2\r\n\r\nno`);
        const target = connect(Number(port), '127.0.0.1', () => {
          client.write('HTTP/1.1 200 Connection established\r\n\r\n');
          client.pipe(target).pipe(client);
        });
        target.on('error', () => client.destroy());
      });
    }),
  );

const json = '{"keys":[]}';
const respond = (content: Buffer | string, ...headers: readonly string[]): Buffer => {
  const body = Buffer.from(content);
  const head = ['HTTP/1.1 200 OK', ...headers, `content-length: ${body.length}`, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), body]);
};
const gzip = 'content-encoding: gzip';

type Row = [title: string, response: Buffer | string, expected: string, options?: ProviderOptions];
const rows: Row[] = [
  ['JSON', respond(json), 'read'],
  ['a wrong type', respond(json, 'content-type: text/html'), 'read'],
  ['a byte order mark', respond(`\ufeff${json}`), 'read'],
  ['two byte order marks', respond(`\ufeff\ufeff${json}`), 'not_json'],
  ['HTTP/1.0, which ends with the connection', `HTTP/1.0 200 OK\r\n\r\n${json}`, 'read', { after: 'end' }],
  ['chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"key\r\n6\r\ns":[]}\r\n0\r\n\r\n', 'read'],
  ['a close that was not announced', respond(json), 'read', { after: 'end' }],
  ['a reused connection that gets no byte', respond(json), 'read', { after: 'lose' }],
  ['gzip', respond(gzipSync(json), gzip), 'read'],
  ['x-gzip', respond(gzipSync(json), 'Content-Encoding: X-GZip'), 'read'],
  ['identity', respond(json, 'content-encoding: identity'), 'read'],
  ['gzip of more than the limit', respond(gzipSync('x'.repeat(1e7)), gzip), 'too_large'],
  [
    'gzip with a byte after its end',
    respond(Buffer.concat([gzipSync(json), Buffer.from([0])]), gzip),
    'bad_coding gzip',
  ],
  ['gzip that is cut off', respond(gzipSync(json).subarray(0, -9), gzip), 'bad_coding gzip'],
  ['no gzip', respond(json, gzip), 'bad_coding gzip'],
  ['br', respond(json, 'content-encoding: br'), 'bad_coding br'],
  ['two codings', respond(gzipSync(gzipSync(json)), 'content-encoding: gzip, gzip'), 'bad_coding undefined'],
  ['a page of HTML', respond('<html>', 'content-type: text/html; charset=utf-8'), 'not_json text/html'],
  ['a redirect', 'HTTP/1.1 302 x\r\nlocation: https://a/\r\ncontent-length: 0\r\n\r\n', 'redirect 302'],
  ['a login', 'HTTP/1.1 401 x\r\ncontent-length: 0\r\n\r\n', 'status 401'],
  ['a certificate of yesterday', respond(json), 'tls CERT_HAS_EXPIRED', { validity: { from: -2, to: -1 } }],
  ['a certificate of tomorrow', respond(json), 'tls CERT_NOT_YET_VALID', { validity: { from: 1, to: 2 } }],
];

/** Sends three requests, one after the other; `read`, or kind and detail of the first error. */
async function fetchThrice(url: string, options: Parameters<typeof createOutbound>[0]): Promise<string> {
  const outbound = createOutbound({ environment: {}, ...options });
  onTestFinished(outbound.close);
  try {
    for (let count = 0; count < 3; count++) await outbound.fetchJson(url, limits);
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
  const { port, ca } = await startProvider(respond(json), { heads });
  const environment = { HTTPS_PROXY: `http://127.0.0.1:${await startProxy()}` };
  for (const options of [{ ca }, { ca, environment }]) await fetchThrice(`https://localhost:${port}/keys`, options);
  expect(new Set(heads).size).toBe(1);
  expect(heads[0]).toContain('\r\naccept: application/json, application/jwk-set+json, */*;q=0.1\r\n');
  expect(heads[0]).toContain(`user-agent: portcullis/${version}\r\n`);
  expect(JSON.parse(readFileSync('package.json', 'utf8'))).toMatchObject({ version });
});

it.each([
  [407, 'proxy_credentials 407', /user and password/],
  [403, 'proxy 403', /HTTPS_PROXY/],
  [502, 'proxy 502', /NO_PROXY/],
])('a proxy that responds with %i → %s', async (status, expected, fix) => {
  const { port, ca } = await startProvider(respond(json));
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

it.each([
  ['ERR_TLS_CERT_ALTNAME_INVALID', /name that the certificate/],
  ['CERT_NOT_YET_VALID', /Renew .* clock/],
  ['EPROTO', /HTTPS port/],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', /NODE_EXTRA_CA_CERTS/],
])('%s → its own fix', (code, fix) => {
  expect(toProviderError(Object.assign(new Error(), { code })).fix).toMatch(fix);
});

it('close while a proxy is silent → closed; a proxy that is down → proxy with its code', async () => {
  const { port, ca } = await startProvider(respond(json));
  const silent = createServer();
  const outbound = createOutbound({ ca, environment: { HTTPS_PROXY: `127.0.0.1:${await listen(silent)}` } });
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
  const outbound = createOutbound({ environment: { HTTPS_PROXY: `127.0.0.1:${await listen(silent)}` } });
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
  const { port } = await startProvider(respond(json));
  const target = await startProxy();
  const proxy = createTlsServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (socket) => {
    heads.push(socket.authorized ? 'trusted' : String(socket.getPeerCertificate().subject !== undefined));
    socket.once('data', (head) => {
      heads.push(head.toString());
      const onward = connect(target, '127.0.0.1', () => onward.write(head));
      socket.pipe(onward).pipe(socket);
    });
  });
  const environment = { HTTPS_PROXY: `https://us%20er:s3cret@localhost:${await listen(proxy)}` };
  const url = `https://localhost:${port}/keys`;
  expect(await fetchThrice(url, { ca, environment, identity: `${cert}\n${key}` })).toBe('read');
  expect(heads[0]).toBe('true');
  expect(heads[1]).toContain(`proxy-authorization: Basic ${Buffer.from('us er:s3cret').toString('base64')}\r\n`);
});

it('plain http through a proxy → a response', async () => {
  const port = await listen(createServer((socket) => void socket.once('data', () => socket.end(respond(json)))));
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

it('an authority that is not trusted → tls', async () => {
  const { port } = await startProvider(respond(json));
  expect(await fetchThrice(`https://localhost:${port}/keys`, {})).toMatch(/^tls \w/);
});

it('a client certificate without an authority → the authorities of Node', async () => {
  const { port } = await startProvider(respond(json));
  const { cert, key } = await certificates;
  const client = createHttpClient({ environment: {}, identity: `${cert}${key}` });
  onTestFinished(client.close);
  await expect(
    client.fetch(`https://localhost:${port}/keys`, { method: 'GET', headers: {} } as never),
  ).rejects.toThrow();
});
