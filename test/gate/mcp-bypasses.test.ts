import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { createMcpAuth } from '../../src/adapters/mcp.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createRevocations } from '../../src/core/revocation/revocations.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { useUpstream } from '../support/gate-edge.ts';
import { useGate } from '../support/gate-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { open, sendRaw } from './proxied.ts';

const resource = 'http://localhost:9/mcp';
const maps = { tools: { read: {}, 'delete-*': { scopes: ['files:write'] } } };
const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'delete-x' } });
const readMessage = message.replace('delete-x', 'read');
const json = 'Content-Type: application/json\r\n';
const length = `Content-Length: ${message.length}\r\n`;

const statusOf = (response: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(response)?.[1]);

interface Request {
  readonly head: string;
  readonly body?: string;
  readonly status: number;
}

/** Each with a token that may read, except where it says `anonymous`. */
const bypasses: readonly (readonly [string, Request])[] = [
  ['GET with tools/call as its body', { head: `GET /mcp HTTP/1.1\r\n${json}${length}`, body: message, status: 400 }],
  ['DELETE with a body', { head: `DELETE /mcp HTTP/1.1\r\n${json}${length}`, body: message, status: 400 }],
  ['HEAD with a body', { head: `HEAD /mcp HTTP/1.1\r\n${json}${length}`, body: message, status: 400 }],
  ['PUT with a body', { head: `PUT /mcp HTTP/1.1\r\n${json}${length}`, body: readMessage, status: 400 }],
  ['PATCH with a body', { head: `PATCH /mcp HTTP/1.1\r\n${json}${length}`, body: readMessage, status: 400 }],
  [
    'GET with a body in chunks',
    {
      head: `GET /mcp HTTP/1.1\r\n${json}Transfer-Encoding: chunked\r\n`,
      body: `${message.length.toString(16)}\r\n${message}\r\n0\r\n\r\n`,
      status: 400,
    },
  ],
  ['OPTIONS with a body', { head: `OPTIONS /mcp HTTP/1.1\r\n${json}${length}`, body: message, status: 400 }],
  ...['Mcp_Name: delete-x', 'Mcp.Method: tools/list', 'Content_Encoding: gzip'].map(
    (alias): readonly [string, Request] => [
      `${alias}, which CGI reads with a hyphen`,
      {
        head: `POST /mcp HTTP/1.1\r\n${alias}\r\n${json}Content-Length: ${readMessage.length}\r\n`,
        body: readMessage,
        status: 400,
      },
    ],
  ),
  [
    'a WebSocket handshake',
    {
      head: 'GET /mcp HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
      status: 403,
    },
  ],
  ...[
    'Mcp-Name',
    'mcp-method',
    'MCP-Protocol-Version',
    'Content-Type',
    'content-encoding',
    'authorization',
    'DPoP',
  ].map(
    (name) =>
      [
        `${name} named by Connection`,
        {
          head: `POST /mcp HTTP/1.1\r\nConnection: ${name}, keep-alive\r\nMcp-Method: tools/call\r\nMcp-Name: read\r\n${json}Content-Length: ${readMessage.length}\r\n`,
          body: readMessage,
          status: 400,
        },
      ] as const,
  ),
];

describe('ways past the message', async () => {
  const provider = await useTestProvider();
  const upstream = await useUpstream();
  const rule = { path: '/mcp', preflight: 'allow', mcp: maps };
  const rules = [
    { id: 'mcp', ...rule },
    { id: 'plain', path: '/plain', preflight: 'allow' },
    { id: 'watched', ...rule, path: '/watched', mode: 'report' },
  ];
  const issuers = { staff: { issuer: provider.issuer, audience: resource } };
  const gate = await useGate(
    provider,
    { issuers, rules },
    { UPSTREAM: `http://${upstream.address}`, TUNNEL_TIMEOUT: '1' },
  );

  async function ask({ head, body = '' }: Request, withToken = true): Promise<string> {
    const token = withToken ? `Authorization: Bearer ${await provider.sign({ aud: resource, scope: '' })}\r\n` : '';
    const close = head.includes('Connection:') ? '' : 'Connection: close\r\n';
    const rest = head.includes('keep-alive') ? `GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n` : '';
    return sendRaw(gate.port, `${head}Host: a\r\n${token}${close}\r\n${body}${rest}`).catch(() => '');
  }

  it.each(bypasses)('%s → refused, and nothing reaches the upstream', async (_way, request) => {
    upstream.received.length = 0;
    expect(statusOf(await ask(request))).toBe(request.status);
    expect(upstream.received).toEqual([]);
  });

  it('OPTIONS with a body, without a token → 401, without a body → the upstream', async () => {
    upstream.received.length = 0;
    const preflight = 'Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n';
    for (const path of ['/mcp', '/plain']) {
      const head = `OPTIONS ${path} HTTP/1.1\r\n${preflight}${json}`;
      expect(statusOf(await ask({ head: head + length, body: message, status: 401 }, false))).toBe(401);
      const chunked = { head: `${head}Transfer-Encoding: chunked\r\n`, body: '1\r\na\r\n0\r\n\r\n', status: 401 };
      expect(statusOf(await ask(chunked, false))).toBe(401);
    }
    expect(upstream.received).toEqual([]);
    expect(statusOf(await ask({ head: `OPTIONS /mcp HTTP/1.1\r\n${preflight}`, status: 200 }, false))).toBe(200);
    expect(upstream.received).toMatchObject([{ method: 'OPTIONS', body: '' }]);
  });

  it('the same in report mode → counted', async () => {
    const [, request] = bypasses[0] as (typeof bypasses)[number];
    expect(statusOf(await ask({ ...request, head: request.head.replace('/mcp', '/watched') }))).toBe(200);
    expect(await gate.metrics()).toMatch(/would_refuse_total\{rule="watched",reason="malformed_message"\} 1/);
  });

  it.each([
    ['POST', { head: `POST /mcp HTTP/1.1\r\n${json}Content-Length: ${readMessage.length}\r\n`, body: readMessage }],
    ['GET', { head: 'GET /mcp HTTP/1.1\r\n' }],
    ['DELETE with Content-Length: 0', { head: 'DELETE /mcp HTTP/1.1\r\nContent-Length: 0\r\n' }],
  ])('%s → admitted', async (_method, request) => {
    expect(statusOf(await ask({ ...request, status: 200 }))).toBe(200);
  });
});

describe('a token that ends while the body arrives', () => {
  const issuer = createTestIssuer();
  let late = 0;
  const revocations = createRevocations();
  const server = createResourceServer({
    ...{ issuers: [issuer], audience: issuer.audience, revocations, clockTolerance: 0 },
    now: () => Math.floor(Date.now() / 1000) + late,
  });
  const auth = createMcpAuth(server, { resource, authorizationServers: [issuer.issuer], ...maps });
  const handled: unknown[] = [];
  const http = createServer((incoming: IncomingMessage & { body?: unknown }, outgoing: ServerResponse) =>
    auth.protect(incoming, outgoing, () => {
      handled.push(incoming.body);
      outgoing.end('ok');
    }),
  );
  afterAll(() => stop(http));

  it.each<readonly [string, () => unknown, number]>([
    ['nothing ends', () => undefined, 200],
    [
      'it expires',
      () => {
        late = 4000;
      },
      401,
    ],
    ['a cutoff', () => revocations.revoke({ issuer: issuer.issuer, sub: 'ann' }), 401],
  ])('%s → %3$i', async (_event, end, status) => {
    late = 0;
    handled.length = 0;
    const iat = Math.floor(Date.now() / 1000) - 10;
    const port = http.listening ? (http.address() as AddressInfo).port : await listen(http);
    const head = `POST /mcp HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${issuer.token({ sub: 'ann', iat })}\r\n`;
    const arrived = once(http, 'request');
    const socket = open(port, `${head}${json}Content-Length: ${readMessage.length}\r\n\r\n${readMessage.slice(0, 9)}`);
    await arrived;
    await end();
    socket.write(readMessage.slice(9));
    expect(statusOf(await text(socket))).toBe(status);
    expect(handled.length).toBe(status === 200 ? 1 : 0);
  });
});
