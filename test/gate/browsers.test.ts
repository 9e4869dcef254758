import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport as McpTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Browser } from 'playwright-core';
import { Agent, EventSource } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { listen as listenOn, stop } from '../../tools/shared/network.js';
import { openPage, startBrowser } from '../support/browser.ts';
import { openGate, useGate } from '../support/gate-process.ts';
import { needs } from '../support/programs.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { sendRawFor } from './proxied.ts';

/** An upstream that selects `chat`, and sends the subprotocols that it gets. */
async function startUpstream() {
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => offered.has('chat') && 'chat' });
  const server = createServer((incoming, outgoing) => {
    state.last = incoming;
    if (incoming.url?.startsWith('/mcp')) void state.mcp?.handleRequest(incoming, outgoing);
    else if (!incoming.url?.endsWith('events')) outgoing.end('<!doctype html><title>upstream</title>');
    else outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${++state.streams}\n\n`);
  });
  const state = {
    url: '',
    last: undefined as IncomingMessage | undefined,
    /** Event streams so far. */
    streams: 0,
    mcp: undefined as McpTransport | undefined,
    async close() {
      for (const each of sockets.clients) each.terminate();
      await stop(server);
    },
  };
  server.on('upgrade', (incoming, socket, head) => {
    state.last = incoming;
    sockets.handleUpgrade(incoming, socket, head, (each) => each.send(linesOf(incoming).join(' | ')));
  });
  state.url = `http://127.0.0.1:${await listenOn(server)}`;
  return state;
}

/** The subprotocols that the upstream got, one string for each line. */
const linesOf = ({ rawHeaders }: IncomingMessage): readonly string[] =>
  rawHeaders.filter((_, index) => index % 2 === 1 && /^sec-websocket-protocol$/i.test(rawHeaders[index - 1] ?? ''));

const rule = (id: string, more: object = {}) => ({ id, path: `/${id}/**`, webSocketToken: 'protocol', ...more });
const provider = await useTestProvider();
const upstream = await startUpstream();
afterAll(() => upstream.close());
const token = await provider.sign({ sub: 'ann' });
const rules = {
  issuers: { idp: { issuer: provider.issuer, audience: provider.audience } },
  rules: [
    rule('token'),
    rule('scoped', { scopes: ['chat'] }),
    rule('optional', { access: 'optional' }),
    rule('report', { mode: 'report', scopes: ['chat'] }),
    rule('forward', { forward: ['authorization'] }),
    rule('dpop', { dpop: 'required' }),
    rule('mcp', { mcp: { tools: { '*': {} } } }),
    { id: 'page', path: '/page', access: 'open' },
    { id: 'plain', path: '/plain/**' },
  ],
};
const gate = await useGate(provider, rules, { UPSTREAM: upstream.url, CLOCK_TOLERANCE: '0' });
const socketUrl = `${gate.url.replace('http', 'ws')}/token/x`;

const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
const key = `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`;

/** Sends a request for a WebSocket, with `T` for the token. Returns the status, the selected subprotocol and what the upstream got. */
async function offer(path: string, lines: readonly string[], start: readonly string[] = ['GET', ...upgrade, key]) {
  const [method, ...more] = start;
  upstream.last = undefined;
  const head = [`${method} /${path}/x HTTP/1.1`, 'Host: api.example', ...more, ...lines].join('\r\n');
  const text = `${head.replaceAll(/\bT\b/g, token)}\r\n\r\n`;
  const answer = await sendRawFor(gate.port, text, (seen) => seen.includes('\r\n\r\n'));
  const got = upstream.last as IncomingMessage | undefined; // set since
  return {
    status: Number(answer.split(' ')[1]),
    selected: /^sec-websocket-protocol: (.*)\r$/im.exec(answer)?.[1],
    upstream: got && linesOf(got).map((line) => line.replaceAll(token, 'T')),
    headers: got?.headers,
    answer,
  };
}

const protocols = (value: string) => `Sec-WebSocket-Protocol: ${value}`;

describe('webSocketToken', () => {
  it.each<[string, readonly string[], string | undefined, readonly string[]]>([
    ['token', [protocols('chat, bearer, T')], 'chat', ['chat']],
    ['token', [protocols('a, bearer, T')], undefined, ['a']],
    ['token', [protocols('chat'), protocols('bearer'), protocols('T')], 'chat', ['chat']],
    ['token', ['Authorization: Bearer T', protocols('chat')], 'chat', ['chat']],
    ['token', ['Authorization: Bearer T', protocols('chat, bearer, wrong')], 'chat', ['chat']],
    ['optional', [protocols('bearer, T')], 'bearer', []],
    ['report', [protocols('bearer, T')], 'bearer', []],
    ['report', [protocols('chat, bearer, wrong')], 'chat', ['chat']],
    ['forward', [protocols('bearer, T')], 'bearer', []],
    ['token', ['Connection: Sec-WebSocket-Protocol', protocols('chat, bearer, T')], 'chat', ['chat']],
  ])('rule %s, %j → 101, selected %s, the upstream gets %j', async (path, lines, selected, expected) => {
    const seen = await offer(path, lines);
    expect([seen.status, seen.selected, seen.upstream]).toEqual([101, selected, expected]);
    expect(seen.headers?.['authorization']).toBeUndefined();
    expect(seen.headers?.['x-auth-subject']).toBe(path !== 'report' && lines.join().includes('T') ? 'ann' : '');
  });

  it.each<[number, string, string, readonly string[]]>([
    [400, 'ambiguous_request', 'token', [protocols('bearer, T'), protocols('bearer, T')]],
    [400, 'ambiguous_request', 'token', ['Authorization: Bearer T', protocols('bearer')]],
    [400, 'ambiguous_request', 'optional', [protocols('chat, bearer')]],
    [401, 'malformed_token', 'optional', [protocols('bearer, a.b')]],
    [401, 'opaque_token', 'token', [protocols('bearer, wrong')]],
    [401, 'opaque_token', 'token', ['Authorization: Bearer wrong', protocols('bearer, T')]],
    [401, 'missing_credentials', 'token', ['Authorization:', protocols('bearer, T')]],
    [401, 'missing_credentials', 'token', [protocols('chat')]],
    [401, 'missing_credentials', 'plain', [protocols('bearer, T')]],
    [401, 'bearer_not_accepted', 'dpop', [protocols('bearer, T')]],
    [400, 'bearer_with_dpop_proof', 'token', ['DPoP: x', protocols('bearer, T')]],
    [403, 'insufficient_scope', 'scoped', [protocols('bearer, T')]],
  ])('→ %i %s: rule %s, %j', async (status, reason, path, lines) => {
    const { answer, ...seen } = await offer(path, lines);
    expect([seen.status, seen.upstream]).toEqual([status, undefined]);
    const id = /^x-request-id: (.*)\r$/im.exec(answer)?.[1];
    expect(await gate.findLog((line) => line['id'] === id)).toMatchObject({ reason, rule: path });
  });

  it.each([
    ['POST', ...upgrade, key, 'Content-Length: 0'],
    ['GET', 'Connection: Upgrade', 'Upgrade: h2c', key],
    ['GET'],
  ])('not a handshake (%s %s %s %s) → the token is not read, and removed', async (...start) => {
    const sent = start.filter((line) => line !== undefined);
    expect(await offer('token', [protocols('bearer, T')], sent)).toMatchObject({ status: 401, upstream: undefined });
    const anonymous = await offer('optional', [protocols('chat, bearer, T')], sent);
    expect(anonymous).toMatchObject({ status: 200, upstream: ['chat'], headers: { 'x-auth-subject': '' } });
  });

  it('report mode → would_refuse with the reason', async () => {
    const reasons = ['bearer, T', 'bearer, wrong', 'bearer'];
    const before = gate.logs.length;
    for (const value of reasons) await offer('report', [protocols(`chat, ${value}`)]);
    const seen = () => gate.logs.slice(before).flatMap((line) => line['would_refuse'] ?? []);
    await expect.poll(seen).toEqual(['insufficient_scope', 'opaque_token', 'ambiguous_request']);
  });

  it('the token → in no line of the log', () => {
    expect(JSON.stringify(gate.logs)).not.toContain(token.slice(-40));
  });

  it('beside a proxy → exit 78 with the fix', async () => {
    const started = openGate(provider, rules);
    const fix = '"webSocketToken" of the rule "token" cannot be used beside a proxy';
    await expect(started).rejects.toMatchObject({ end: { code: 78 }, stderr: expect.stringContaining(fix) });
  });
});

/** A token that expires while a stream is open. */
const short = () => provider.sign({ sub: 'ann', exp: Math.floor(Date.now() / 1000) + 3 });

describe('in a browser', needs('chromium'), () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  it('new WebSocket with a token, a wrong one and none → open with its subprotocol, or closed with 1006', async () => {
    const { page, close } = await openPage(browser, upstream.url);
    const offers = [['chat', 'bearer', token], ['bearer', token], ['chat', 'bearer', 'wrong'], ['chat']];
    const seen = await page.evaluate(`Promise.all(${JSON.stringify(offers)}.map((offered) => new Promise((resolve) => {
      const socket = new WebSocket('${socketUrl}', offered);
      socket.onmessage = ({ data }) => resolve(['open', socket.protocol, data]);
      socket.onclose = ({ code }) => resolve(['close', code]);
    })))`);
    const closed = ['close', 1006];
    expect(seen).toEqual([['open', 'chat', 'chat'], ['open', 'bearer', ''], closed, closed]);
    await close();
  });

  it('a token that expires → a WebSocket closes with 1006, fetch reads the end; both open again', async () => {
    const { page, close } = await openPage(browser, `${gate.url}/page`);
    const tokens = JSON.stringify([await short(), token]);
    const seen = await page.evaluate(`(async () => {
      const tokens = ${tokens};
      const open = (value) => new Promise((resolve) => {
        const socket = new WebSocket('${socketUrl}', ['chat', 'bearer', value]);
        const closed = new Promise((end) => (socket.onclose = ({ code }) => end(code)));
        socket.onmessage = () => resolve({ closed, socket });
      });
      const read = async (value) => {
        const response = await fetch('/token/events', { headers: { authorization: 'Bearer ' + value } });
        const reader = response.body.getReader();
        await reader.read();
        return reader;
      };
      const [{ closed }, first] = await Promise.all([open(tokens[0]), read(tokens[0])]);
      const [code, { done }] = await Promise.all([closed, first.read()]);
      const [{ socket }, second] = await Promise.all([open(tokens[1]), read(tokens[1])]);
      socket.close();
      await second.cancel();
      return [code, done];
    })()`);
    expect(seen).toEqual([1006, true]);
    await close();
  });
});

/** Each client gets a token that expires while its stream is open, and returns with another one. */
describe.concurrent('an open stream whose token expires', () => {
  /** An EventSource that authorizes each connection with the next token, the last one again. */
  const listen = (...tokens: readonly string[]) => {
    let connections = 0;
    const agent = new Agent();
    const dispatcher = agent.compose((dispatch) => (options, handler) => {
      const authorization = `Bearer ${tokens[Math.min(connections++, tokens.length - 1)]}`;
      return dispatch({ ...options, headers: { ...(options.headers as object), authorization } }, handler);
    });
    const source = new EventSource(`${gate.url}/token/events`, { node: { dispatcher, reconnectionTime: 20 } });
    const seen: string[] = [];
    source.addEventListener('message', ({ data }) => seen.push(String(data)));
    return { source, seen };
  };

  it('EventSource → it connects again by itself; with the expired token it gets 401, and stays closed', async ({
    expect,
  }) => {
    const other = listen(await short());
    await expect.poll(() => other.seen).toHaveLength(1);
    const first = upstream.streams + 1;
    const { source, seen } = listen(await short(), token);
    await expect.poll(() => seen).toEqual([String(first), String(first + 1)]);
    expect(source.readyState).toBe(EventSource.OPEN);
    source.close();
    await expect.poll(() => other.source.readyState).toBe(EventSource.CLOSED);
    expect(other.seen).toHaveLength(1);
  });

  it('MCP → the client opens its stream again, and gets what the server sends then', async ({ expect }) => {
    const server = new McpServer(
      { name: 'clock', version: '1.0.0' },
      { capabilities: { tools: { listChanged: true } } },
    );
    upstream.mcp = new McpTransport({ sessionIdGenerator: randomUUID });
    await server.connect(upstream.mcp);
    let opened = 0;
    const statuses: string[] = [];
    const transport = new ClientTransport(new URL(`${gate.url}/mcp/`), {
      reconnectionOptions: {
        initialReconnectionDelay: 20,
        maxReconnectionDelay: 1000,
        reconnectionDelayGrowFactor: 2,
        maxRetries: 5,
      },
      async fetch(url, init) {
        const headers = new Headers(init?.headers);
        // The short token is that of the first stream: it could end before a busy host has opened it.
        const isFirst = init?.method === 'GET' && opened++ === 0;
        headers.set('authorization', `Bearer ${isFirst ? await short() : token}`);
        const response = await fetch(url, { ...init, headers });
        statuses.push(`${init?.method} ${response.status}`);
        return response;
      },
    });
    const client = new McpClient({ name: 'test', version: '1.0.0' });
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    await client.connect(transport);
    await expect.poll(() => statuses.filter((each) => each === 'GET 200')).toHaveLength(2);
    server.sendToolListChanged();
    await expect.poll(() => changes).toBe(1);
    await client.close();
    await server.close();
  });
});
