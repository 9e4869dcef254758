import { createServer, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMcpAuth } from '../../../src/adapters/mcp.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { openGate } from '../../support/gate-process.ts';
import { send } from '../../support/http-client.ts';
import { listen } from '../../support/listening.ts';
import { useTestProvider } from '../../support/test-provider.ts';

/** Gaps of other MCP servers and gateways: the library and the gate respond alike. Forms of messages: operations.test.ts. */
const resource = 'http://localhost:9/mcp';
const maps = {
  tools: {
    'delete-*': { scopes: ['files:write'] },
    löschen: { scopes: ['files:write'] },
    '*': { scopes: ['files:read'] },
  },
};
const json = ['Content-Type', 'application/json'];
const call = (name: unknown, more: object = {}) => ({
  ...{ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name } },
  ...more,
});
const encode = (name: string): string => `=?base64?${Buffer.from(name).toString('base64')}?=`;
const provider = await useTestProvider();

/** An MCP server that knows nothing of OAuth. */
let arrived = 0;
const serve: RequestListener = (incoming, outgoing) => {
  arrived++;
  incoming.resume();
  outgoing.end('{}');
};

async function openLibrary() {
  const { issuer, ca } = provider;
  const server = createResourceServer({ issuers: [{ issuer }], audience: resource, ca });
  const options = { resource, authorizationServers: [issuer], policy: { scopes: ['mcp'] } };
  const { protect } = createMcpAuth(server, { ...options, ...maps });
  const { origin, close } = await listen(
    createServer((incoming, outgoing) => protect(incoming, outgoing, () => serve(incoming, outgoing))),
  );
  return { url: origin, close: () => close().then(server.close) };
}

async function protectByGate() {
  const upstream = await listen(createServer(serve));
  const rules = {
    issuers: { staff: { issuer: provider.issuer, audience: resource } },
    rules: [{ id: 'mcp', path: '/mcp', scopes: ['mcp'], mcp: maps }],
  };
  const gate = await openGate(provider, rules, { UPSTREAM: upstream.origin, MCP_SERVER: 'true' });
  return { url: gate.url, close: () => gate.stop().then(upstream.close) };
}

describe.each([
  ['library', openLibrary],
  ['gate', protectByGate],
] as const)('%s', (_kind, open) => {
  let opened: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened?.close());

  const authorize = async (scope: string) => [
    ...['Authorization', `Bearer ${await provider.sign({ aud: resource, scope })}`],
  ];

  it.each<readonly [string, unknown, string, readonly string[], number]>([
    ['no Mcp headers, a tool without its scope', call('delete-all'), 'mcp files:read', [], 403],
    ['no Mcp headers, a tool with its scope', call('delete-all'), 'mcp files:write', [], 200],
    ['a protocol version alone', call('delete-all'), 'mcp', ['MCP-Protocol-Version', '2025-06-18'], 403],
    ['an equal name twice', call('list'), 'mcp files:read', ['Mcp-Name', 'list', 'Mcp-Name', 'list'], 400],
    ['header fields in another case', call('list'), 'mcp files:read', ['MCP-METHOD', 'tools/list'], 400],
    ['a method in another case', call('delete-all', { method: 'Tools/Call' }), 'mcp', [], 200],
    ['a base64 name', call('löschen'), 'mcp files:write', ['Mcp-Name', encode('löschen')], 200],
    ['a base64 name without its scope', call('löschen'), 'mcp files:read', ['Mcp-Name', encode('löschen')], 403],
    ['a base64 name of another tool', call('delete-all'), 'mcp files:write', ['Mcp-Name', encode('list')], 400],
    ['a call with the id null', call('delete-all', { id: null }), 'mcp files:read', [], 403],
    ['a call without an id', [call('list'), call('delete-all', { id: undefined })], 'mcp files:read', [], 403],
    ['a batch whose header names its first call', [call('list')], 'mcp files:read', ['Mcp-Name', 'list'], 400],
  ])('%s → %4$i', async (_input, message, scope, headers, status) => {
    const before = arrived;
    const sent = [...(await authorize(scope)), ...json, ...headers];
    const answer = await send(opened.url, '/mcp', { method: 'POST', headers: sent, body: JSON.stringify(message) });
    expect([answer.status, arrived - before]).toEqual([status, status === 200 ? 1 : 0]);
  });

  it.each(['GET', 'DELETE'])('%s → the policy alone', async (method) => {
    const status = async (headers: readonly string[]) => (await send(opened.url, '/mcp', { method, headers })).status;
    const scoped = [await authorize('mcp'), await authorize('other'), []];
    expect(await Promise.all(scoped.map(status))).toEqual([200, 403, 401]);
  });

  it('one client that stalls many messages → 503 for this client, and another client is served', async () => {
    const [, authorization = ''] = await authorize('mcp files:read');
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    const { port } = new URL(opened.url);
    const message = JSON.stringify(call('list', { params: { name: 'list', pad: 'x'.repeat(1024 * 1024 - 200) } }));
    const ended = new Set<object>();
    let refused = 0;
    const stalled = Array.from({ length: 40 }, () => {
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: '127.0.0.1' });
      // The server may close the connection of a body that it does not read, and the response is lost then.
      socket.on('error', () => ended.add(socket));
      socket.on('data', (bytes) => {
        ended.add(socket);
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
    await expect.poll(() => ended.size, { timeout: 20_000 }).toBe(33);
    expect(refused).toBeGreaterThan(0);
    expect(await sendFrom('127.0.0.2')).toBe('HTTP/1.1 200');
    for (const socket of stalled) socket.destroy();
    await expect.poll(() => sendFrom('127.0.0.1'), { timeout: 10_000 }).toBe('HTTP/1.1 200');
  });
});
