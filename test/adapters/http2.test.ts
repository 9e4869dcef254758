import { once } from 'node:events';
import { connect, createServer, type Http2Server, type OutgoingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthorize } from '../../src/adapters/fastify.ts';
import { createProtect } from '../../src/adapters/node.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { listen } from '../support/listening.ts';

const issuer = createTestIssuer();
const client = issuer.dpopClient();
const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
const path = '/messages';

/** Each serves one protected path over HTTP/2 without TLS. */
const servers = {
  async fastify() {
    // Its types are those of another server.
    const app = fastify({ http2: true }) as unknown as FastifyInstance;
    app.get(path, { onRequest: createAuthorize(server)() }, async () => 'let in');
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as AddressInfo; // it listens on TCP
    return { port, close: () => app.close() };
  },
  async 'node:http2'() {
    const listener = createProtect(server)({}, (_request, response) => response.end('let in'));
    // The compatibility layer of HTTP/2 has what is used of a request and a response of HTTP/1.1.
    const http: Http2Server = createServer(listener as unknown as Parameters<typeof createServer>[0]);
    return listen(http);
  },
};

describe.each(Object.entries(servers))('%s over HTTP/2', (_name, start) => {
  let running: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    running = await start();
  });
  afterAll(() => running.close());

  async function call(headers: OutgoingHttpHeaders) {
    const session = connect(`http://127.0.0.1:${running.port}`);
    session.on('error', () => undefined);
    const stream = session.request({ ':path': path, ...headers });
    const [answer] = (await once(stream, 'response')) as [Record<string, unknown>];
    let body = '';
    for await (const chunk of stream.setEncoding('utf8')) body += String(chunk);
    session.close();
    return { status: answer[':status'], body };
  }
  const dpop = (host: string) => client.headers({ url: `http://${host}${path}` });

  it('DPoP, a proof for the requested authority → admitted', async () => {
    const host = `127.0.0.1:${running.port}`;
    expect(await call(dpop(host))).toEqual({ status: 200, body: 'let in' });
    expect(await call({ ':authority': 'api.example', ...dpop('api.example') })).toMatchObject({ status: 200 });
  });

  it('a proof for localhost, with another authority → 401', async () =>
    expect(await call(dpop('localhost'))).toMatchObject({ status: 401 }));

  it('an equal Host → admitted; a different one → 400', async () => {
    const authority = { ':authority': 'api.example' };
    expect(await call({ ...authority, host: 'API.example', ...dpop('api.example') })).toMatchObject({ status: 200 });
    expect(await call({ ...authority, host: 'evil.example', ...dpop('evil.example') })).toMatchObject({ status: 400 });
    expect(await call({ ...authority, host: 'evil.example', ...dpop('api.example') })).toMatchObject({ status: 400 });
  });
});
