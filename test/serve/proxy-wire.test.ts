import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, send } from '../support/http-client.ts';
import { listen } from '../support/listening.ts';
import { needs } from '../support/programs.ts';
import { type ProxyServer, programOf, proxyNames, startProxy } from '../support/proxy-server.ts';
import { createTestCertificates, type TestCertificates } from '../support/tls.ts';
import { words } from '../support/words.ts';

/** What an instance of the service would get to see. */
interface Arrival {
  readonly path: string;
  /** Names in lower case, in the order of arrival. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

type Upstream = Awaited<ReturnType<typeof listen>>;

const arrivals: Arrival[] = [];
let certificates: TestCertificates;
let upstreams: readonly [Upstream, Upstream];

beforeAll(async () => {
  certificates = await createTestCertificates();
  upstreams = [await open(), await open()];
});
afterAll(() => Promise.all(upstreams.map((upstream) => upstream.close())));

/** An upstream that notes what arrives and cuts the connection of a call for /lost. */
const open = () =>
  listen(
    createServer({ maxHeaderSize: 32_768 }, (request, response) => {
      // Caddy sends it by itself.
      if (request.url === '/api/public') return void response.end();
      arrivals.push({ path: request.url ?? '', headers: readHeaders(request) });
      if (request.url === '/lost') request.socket.destroy();
      else if (request.url === '/upload')
        request
          .on('error', () => {})
          .on('end', () => response.end())
          .resume();
      else response.end();
    }),
  );

function readHeaders({ rawHeaders }: IncomingMessage): Arrival['headers'] {
  return rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name.toLowerCase(), rawHeaders[index + 1] ?? ''] as const] : [],
  );
}

/** Sends a request with an invalid chunk, and waits for the end of its connection. */
async function sendMalformedBody(port: number, path: string): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: certificates.ca });
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`;
  socket.on('error', () => {}).end(`${head}zz\r\n`);
  await new Promise((resolve) => socket.resume().on('close', resolve));
}

/** What a client may send to pass for another. */
const disguises: readonly (readonly [what: string, headers: readonly string[]])[] = [
  ['nothing', []],
  ['X-Forwarded-*', ['X-Forwarded-Proto', 'http', 'X-Forwarded-Host', 'evil.example', 'X-Forwarded-Prefix', '/evil']],
  [
    'X-Forwarded-* that are malformed',
    ['X-Forwarded-Proto', 'gopher', 'X-Forwarded-Host', 'a b', 'X-Forwarded-Prefix', '/../..'],
  ],
  [
    'each twice, and with underscores',
    [
      ...['X-Forwarded-Proto', 'http', 'x-forwarded-proto', 'http', 'X_Forwarded_Proto', 'http'],
      ...['X-Forwarded-Host', 'evil.example', 'X-FORWARDED-HOST', 'evil.example', 'X_Forwarded_Host', 'evil.example'],
      ...['X-Forwarded-Prefix', '/evil', 'x-forwarded-prefix', '/evil', 'x_forwarded_prefix', '/evil'],
      ...['X-Forwarded-For', '192.0.2.1', 'X_Forwarded_For', '192.0.2.1'],
    ],
  ],
  ['Forwarded', ['Forwarded', 'for=192.0.2.1;host=evil.example;proto=http']],
  // RFC 9110 §7.6.1: names the headers that the proxy drops.
  [
    'Connection with the names',
    ['Connection', 'close, X-Forwarded-Proto, X-Forwarded-Host', 'Connection', 'x-forwarded-prefix'],
  ],
];

for (const name of proxyNames) {
  describe(name, needs(programOf(name)), () => {
    let edge: ProxyServer;
    const start = (first: Upstream, second: Upstream): Promise<ProxyServer> =>
      startProxy(name, {
        upstreams: [new URL(first.origin).host, new URL(second.origin).host],
        prefix: '/gate',
        certificates,
      });
    const get = (proxy: ProxyServer, path: string, headers: readonly string[] = []): Promise<Answer> =>
      send(proxy.origin, path, { ca: certificates.ca, headers });

    beforeAll(async () => {
      edge = await start(...upstreams);
    });
    afterAll(() => edge?.stop());

    it.each(disguises)(
      'client sends %s → the headers of the proxy arrive, once each, and no other of them',
      async (_, headers) => {
        await get(edge, '/gate/', ['Host', 'localhost', ...headers]);
        const lines = arrivals.at(-1)?.headers.map(([header, value]) => `${header}: ${value}`);
        expect(lines?.filter((line) => /forwarded/i.test(line)).sort()).toEqual([
          'x-forwarded-for: 127.0.0.1',
          `x-forwarded-host: localhost:${edge.port}`,
          'x-forwarded-prefix: /gate',
          'x-forwarded-proto: https',
        ]);
      },
    );

    it('Authorization and DPoP of the largest size, and other headers up to 32 KiB → arrive unchanged', async () => {
      const token = 'x'.repeat(16_384);
      const proof = 'y'.repeat(12_288);
      const headers = ['Authorization', `DPoP ${token}`, 'DPoP', proof, 'X-Padding', 'z'.repeat(3000)];
      expect((await get(edge, '/gate/', headers)).status).toBe(200);
      const arrived = new Map(arrivals.at(-1)?.headers);
      expect(arrived.get('authorization')).toBe(`DPoP ${token}`);
      expect(arrived.get('dpop')).toBe(proof);
    });

    it.each([
      ...words(`
        / /api/private?a=%2f&b=1?2 /api/private? /api/%70rivate /api/%2570rivate //api/private /api//private
        /api/./private /api/public/../private /api/public/%2E%2e/private /api/private;x=1 /api%2Fprivate
        /api/private%3Fx /api/private%5cx /gate/gate/
      `),
      ...['/~a$&+,;=:@-._'],
    ])('%s behind the prefix → arrives unchanged', async (path) => {
      expect((await get(edge, `/gate${path}`)).status).toBe(200);
      expect(arrivals.at(-1)?.path).toBe(path);
    });

    it('absolute URL in the request line → its path arrives', async () => {
      expect((await get(edge, `${edge.origin}/gate/api/private?x=%2f`)).status).toBe(200);
      expect(arrivals.at(-1)?.path).toBe('/api/private?x=%2f');
    });

    it.each([
      ['path without the prefix', '/api/private', undefined],
      ['path with half the prefix', '/gat/api/private', undefined],
      ['path with more than the prefix', '/gateway/api/private', undefined],
      ['prefix in capitals', '/GATE/api/private', undefined],
      ['foreign Host', '/gate/api/private', 'evil.example'],
      ['foreign Host in the request line', 'https://evil.example/gate/api/private', undefined],
    ])('%s → refused by the proxy, nothing arrives', async (_, path, host) => {
      const before = arrivals.length;
      const { status } = await get(edge, path, host === undefined ? [] : ['Host', host]);
      expect([400, 404, 421]).toContain(status);
      expect(arrivals.length).toBe(before);
    });

    it('request whose response is lost on a kept connection → not sent again', async () => {
      const proxy = await start(...upstreams);
      for (let i = 0; i < 4; i++) await get(proxy, '/gate/fine');
      const lost = await get(proxy, '/gate/lost').then(
        ({ status }) => status,
        () => 'cut off',
      );
      await proxy.stop();
      expect([502, 'cut off']).toContain(lost);
      expect(arrivals.filter(({ path }) => path === '/lost')).toHaveLength(1);
      arrivals.length = 0;
    });

    it('malformed bodies of one client → calls of another one reach both instances', async () => {
      for (let i = 0; i < 4; i++) await sendMalformedBody(edge.port, '/gate/upload');
      for (let i = 0; i < 4; i++) expect(await get(edge, '/gate/fine')).toMatchObject({ status: 200 });
    });

    it('one instance goes down → one call fails at most', async () => {
      const leaving = await open();
      const proxy = await start(leaving, upstreams[1]);
      for (let i = 0; i < 2; i++) await get(proxy, '/gate/fine');
      await leaving.close();
      const statuses: number[] = [];
      for (let i = 0; i < 6; i++) statuses.push((await get(proxy, '/gate/fine')).status);
      await proxy.stop();
      expect(statuses.filter((status) => status !== 200).length).toBeLessThanOrEqual(1);
    });
  });
}
