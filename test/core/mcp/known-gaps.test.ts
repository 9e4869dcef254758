import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, request as requestHttp } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMcpAuth, type McpAuthOptions } from '../../../src/adapters/mcp.ts';
import { createKeySet, type ManagedKeySet } from '../../../src/core/keys/key-set.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { type OpenedGate, openGate } from '../../support/gate-process.ts';
import { send } from '../../support/http-client.ts';
import { listen } from '../../support/listening.ts';
import { useTestProvider } from '../../support/test-provider.ts';

/** Gaps of other MCP servers and gateways: the library and the gate respond alike. */
const resource = 'http://localhost:9/mcp';
const maps = {
  tools: {
    'delete-*': { scopes: ['files:write'] },
    löschen: { scopes: ['files:write'] },
    '*': { scopes: ['files:read'] },
  },
  resources: { 'file:///notes/*': { scopes: ['files:read'] } },
};
const json = ['Content-Type', 'application/json'];
const call = (name: unknown, more: object = {}) => ({
  ...{ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name } },
  ...more,
});
const encode = (name: string): string => `=?base64?${Buffer.from(name).toString('base64')}?=`;
const events = ['id: 1\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n', 'id: 2\ndata: {}\n\n'];

interface Arrived {
  readonly method: string | undefined;
  readonly lastEventId: string | undefined;
  readonly body: unknown;
}
const arrived: Arrived[] = [];
const provider = await useTestProvider();

/** An MCP server that knows nothing of OAuth. It streams events to GET, from the one after `Last-Event-ID`. */
async function respond(incoming: IncomingMessage & { readonly body?: unknown }): Promise<readonly string[]> {
  const lastEventId = incoming.headers['last-event-id'] as string | undefined; // Node joins it
  const body = incoming.body ?? ((await text(incoming)) || undefined);
  arrived.push({ method: incoming.method, lastEventId, body: typeof body === 'string' ? JSON.parse(body) : body });
  return incoming.method === 'GET' ? events.slice(Number(lastEventId ?? 0)) : ['{}'];
}
const serve: RequestListener = (incoming, outgoing) => {
  const type = incoming.method === 'GET' ? 'text/event-stream' : 'application/json';
  outgoing.setHeader('content-type', type).flushHeaders();
  void respond(incoming).then((parts) => {
    for (const part of parts) outgoing.write(part);
    outgoing.end();
  });
};

interface Protected {
  readonly url: string;
  /** Opens the same protection with these requirements, and returns its metadata. */
  readMetadata(requirements: Pick<McpAuthOptions, 'policy' | 'tools'>): Promise<unknown>;
  close(): Promise<void>;
}

async function openLibrary(): Promise<Protected> {
  const keys: ManagedKeySet = createKeySet({ issuer: provider.issuer, ca: provider.ca });
  const server = createResourceServer({ issuers: [{ issuer: provider.issuer, keys }], audience: resource });
  const open = (requirements: Partial<McpAuthOptions>) =>
    createMcpAuth(server, { resource, authorizationServers: [provider.issuer], ...requirements });
  const { protect } = open({ policy: { scopes: ['mcp'] }, ...maps });
  const { origin, close } = await listen(
    createServer((incoming, outgoing) => protect(incoming, outgoing, () => serve(incoming, outgoing))),
  );
  return {
    url: origin,
    readMetadata: async (requirements) =>
      open(requirements).answerMetadata(new Request('http://localhost:9/.well-known/oauth-protected-resource'))?.json(),
    async close() {
      await close();
      keys.close();
    },
  };
}

async function protectByGate(): Promise<Protected> {
  const upstream = await listen(createServer(serve));
  const rulesFor = ({ policy = {}, ...entries }: Pick<McpAuthOptions, 'policy' | 'tools'>) => ({
    issuers: { staff: { issuer: provider.issuer, audience: resource } },
    rules: [{ id: 'mcp', path: '/mcp', ...policy, mcp: entries }],
  });
  const start = (rules: object): Promise<OpenedGate> =>
    openGate(provider, rules, { UPSTREAM: upstream.origin, MCP_SERVER: 'true' });
  const gate = await start(rulesFor({ policy: { scopes: ['mcp'] }, ...maps }));
  return {
    url: gate.url,
    async readMetadata(requirements) {
      const other = await start(rulesFor(requirements));
      try {
        return (await send(other.url, '/.well-known/oauth-protected-resource')).json;
      } finally {
        await other.stop();
      }
    },
    async close() {
      await gate.stop();
      await upstream.close();
    },
  };
}

describe.each([
  ['library', openLibrary],
  ['gate', protectByGate],
] as const)('%s', (_kind, open) => {
  let opened: Protected;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened?.close());

  const authorize = async (scope: string) => [
    ...['Authorization', `Bearer ${await provider.sign({ aud: resource, scope })}`],
  ];
  async function post(message: unknown, scope: string, headers: readonly string[] = []) {
    const before = arrived.length;
    const body = JSON.stringify(message);
    const sent = { method: 'POST', headers: [...(await authorize(scope)), ...json, ...headers], body };
    const answer = await send(opened.url, '/mcp', sent);
    return { ...answer, arrived: arrived.slice(before) };
  }

  it.each<readonly [string, unknown, string, readonly string[], number]>([
    ['no Mcp headers, a tool without its scope', call('delete-all'), 'mcp files:read', [], 403],
    ['no Mcp headers, a tool with its scope', call('delete-all'), 'mcp files:write', [], 200],
    ['a protocol version alone', call('delete-all'), 'mcp', ['MCP-Protocol-Version', '2025-06-18'], 403],
    ['a method that needs no entry in the header', call('delete-all'), 'mcp', ['Mcp-Method', 'tools/list'], 400],
    ['another name in the header', call('delete-all'), 'mcp files:read', ['Mcp-Name', 'list'], 400],
    ['another name in the header, all scopes', call('list'), 'mcp files:read', ['Mcp-Name', 'delete-all'], 400],
    ['an equal name twice', call('list'), 'mcp files:read', ['Mcp-Name', 'list', 'Mcp-Name', 'list'], 400],
    ['a name of the header in another case', call('list'), 'mcp files:read', ['Mcp-Name', 'List'], 400],
    ['header fields in another case', call('list'), 'mcp files:read', ['MCP-METHOD', 'tools/list'], 400],
    ['a method in another case', call('delete-all', { method: 'Tools/Call' }), 'mcp', [], 200],
    ['a tool in another case → the entry of that name', call('DELETE-all'), 'mcp files:write', [], 403],
    ['a member in another case', { ...call('list'), Method: 'tools/list' }, 'mcp files:read', [], 400],
    ['params in another case', { id: 1, method: 'tools/call', Params: { name: 'list' } }, 'mcp files:read', [], 400],
    ['a base64 name', call('löschen'), 'mcp files:write', ['Mcp-Name', encode('löschen')], 200],
    ['a base64 name without its scope', call('löschen'), 'mcp files:read', ['Mcp-Name', encode('löschen')], 403],
    ['a base64 name of another tool', call('delete-all'), 'mcp files:write', ['Mcp-Name', encode('list')], 400],
    ['base64 without padding', call('a'), 'mcp files:read', ['Mcp-Name', '=?base64?YQ?='], 400],
    [
      'a tool that is named like an encoding',
      call('=?base64?YQ==?='),
      'mcp files:read',
      ['Mcp-Name', '=?base64?YQ==?='],
      400,
    ],
    ['a call without an id', call('delete-all', { id: undefined }), 'mcp files:read', [], 403],
    ['a call with the id null', call('delete-all', { id: null }), 'mcp files:read', [], 403],
    ['a notification', { jsonrpc: '2.0', method: 'notifications/cancelled' }, 'mcp', [], 200],
    ['a batch with one forbidden call', [call('list'), call('delete-all')], 'mcp files:read', [], 403],
    [
      'a batch with a forbidden call without an id',
      [call('list'), call('delete-all', { id: undefined })],
      'mcp files:read',
      [],
      403,
    ],
    [
      'a batch whose header names its first call',
      [call('list'), call('delete-all')],
      'mcp files:read',
      ['Mcp-Name', 'list'],
      400,
    ],
    ['an empty batch', [], 'mcp', [], 400],
    ['a batch in a batch', [[call('delete-all')]], 'mcp', [], 400],
  ])('%s → %4$i', async (_input, message, scope, headers, status) => {
    const answer = await post(message, scope, headers);
    expect(answer.status).toBe(status);
    const seen = JSON.parse(JSON.stringify(message));
    expect(answer.arrived.map(({ body }) => body)).toEqual(status === 200 ? [seen] : []);
  });

  it.each(['GET', 'DELETE', 'PUT', 'PATCH'])(
    '%s without a token, or without the scope of the policy → 401, 403',
    async (method) => {
      const before = arrived.length;
      expect((await send(opened.url, '/mcp', { method })).status).toBe(401);
      expect((await send(opened.url, '/mcp', { method, headers: await authorize('other') })).status).toBe(403);
      expect(arrived.length).toBe(before);
    },
  );

  it('DELETE with the scope of the policy → ends the session at the server', async () => {
    const headers = [...(await authorize('mcp')), 'Mcp-Session-Id', 'a'];
    expect((await send(opened.url, '/mcp', { method: 'DELETE', headers })).status).toBe(200);
    expect(arrived.at(-1)?.method).toBe('DELETE');
  });

  it('GET with Last-Event-ID → the policy; the stream continues after this event', async () => {
    const resume = async (headers: readonly string[]) =>
      send(opened.url, '/mcp', { headers: [...headers, 'Last-Event-ID', '1'] });
    expect([(await resume([])).status, (await resume(await authorize('files:write'))).status]).toEqual([401, 403]);
    const { status, headers, body } = await resume(await authorize('mcp'));
    expect([status, headers.get('content-type'), body]).toEqual([200, 'text/event-stream', events[1]]);
    expect(arrived.at(-1)).toMatchObject({ method: 'GET', lastEventId: '1' });
    expect((await send(opened.url, '/mcp', { headers: await authorize('mcp') })).body).toBe(events.join(''));
  });

  it.each([
    ['with its length', (body: string) => ['Content-Length', String(body.length)]],
    ['in chunks', () => ['Transfer-Encoding', 'chunked']],
  ])('a body over 1 MiB %s → 413, a body of 1 MiB → 200', async (_name, framing) => {
    for (const [length, status] of [
      [1024 * 1024 + 1, 413],
      [1024 * 1024, 200],
    ] as const) {
      const empty = JSON.stringify(call('list', { params: { name: 'list', pad: '' } }));
      const body = JSON.stringify(call('list', { params: { name: 'list', pad: 'x'.repeat(length - empty.length) } }));
      const headers = [
        ...(await authorize('mcp files:read')),
        ...json,
        ...framing(body),
        'Host',
        'localhost',
        'Connection',
        'close',
      ];
      const outgoing = requestHttp(`${opened.url}/mcp`, { method: 'POST', headers, agent: false });
      // The server may close the connection of a body that it does not read.
      outgoing.on('error', () => {});
      const answered = once(outgoing, 'response');
      outgoing.end(body);
      const [response] = (await answered) as [IncomingMessage];
      response.resume();
      expect(response.statusCode).toBe(status);
    }
  });

  it('one client that stalls many messages → 503 for this client, and another client is served', async () => {
    const [, authorization = ''] = await authorize('mcp files:read');
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    const { port } = new URL(opened.url);
    const message = JSON.stringify(call('list', { params: { name: 'list', pad: 'x'.repeat(1024 * 1024 - 200) } }));
    let refused = 0;
    const stalled = Array.from({ length: 40 }, () => {
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: '127.0.0.1' });
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        if (String(bytes).startsWith('HTTP/1.1 503 ')) refused++;
      });
      socket.write(`${head}Content-Length: ${1024 * 1024}\r\n\r\n${message}`);
      return socket;
    });
    const sendFrom = async (localAddress: string): Promise<string> => {
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
      socket.write(`${head}Connection: close\r\nContent-Length: ${message.length}\r\n\r\n${message}`);
      return (await text(socket)).slice(0, 12);
    };
    // One client has 8 of the 32 MiB, so 7 of its messages are held.
    await expect.poll(() => refused, { timeout: 10_000 }).toBe(33);
    expect(await sendFrom('127.0.0.2')).toBe('HTTP/1.1 200');
    for (const socket of stalled) socket.destroy();
    await expect.poll(() => sendFrom('127.0.0.1'), { timeout: 10_000 }).toBe('HTTP/1.1 200');
  });

  it('no scope is required → metadata without scopes_supported; otherwise every scope', async () => {
    const bare = await opened.readMetadata({ tools: { '*': {} } });
    expect(bare).toMatchObject({ resource });
    expect(bare).not.toHaveProperty('scopes_supported');
    expect(await opened.readMetadata({ tools: { '*': { scopes: ['a'] } } })).toMatchObject({ scopes_supported: ['a'] });
  });
});
