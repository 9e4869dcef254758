import { createServer, type RequestListener } from 'node:http';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { createMcpAuth, type McpAuthOptions } from '../../src/adapters/mcp.ts';
import type { AuditDecision } from '../../src/core/resource-server/audit.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { send } from '../support/http-client.ts';
import { listen } from '../support/listening.ts';

const resource = 'https://api.test/mcp';
const issuer = createTestIssuer({ audience: resource });
const server = createResourceServer({ issuers: [issuer], audience: resource });
const refusals: unknown[] = [];
const options: McpAuthOptions = {
  resource,
  authorizationServers: [issuer.issuer],
  policy: { scopes: ['mcp'] },
  onRefused: ({ reason }) => refusals.push(reason),
};
const maps: Partial<McpAuthOptions> = {
  tools: { 'delete-*': { scopes: ['files:write'] }, '*': { scopes: ['files:read'] } },
  resources: { 'file:///notes/*': { scopes: ['notes'] } },
};

async function serve(listener: RequestListener): Promise<string> {
  const { origin, close } = await listen(createServer(listener));
  closers.push(close);
  return origin;
}
const closers: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(closers.map((close) => close())));

/** An MCP endpoint that responds with the body that it was given. */
function endpoint(more: Partial<McpAuthOptions> = maps): RequestListener {
  const { protect } = createMcpAuth(server, { ...options, ...more });
  return (request, response) =>
    protect(request, response, () =>
      response.end(JSON.stringify((request as { readonly body?: unknown }).body ?? null)),
    );
}
const url = await serve(endpoint());

const token = (scope: string) => ['Authorization', `Bearer ${issuer.token({ scope })}`];
const json = ['Content-Type', 'application/json'];
interface Post {
  readonly scope?: string;
  readonly headers?: readonly string[];
  readonly method?: string;
  readonly to?: string;
}
function post(body: unknown, { scope = 'mcp files:read', headers = json, method = 'POST', to = url }: Post = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return send(to, '/mcp', { method, headers: [...token(scope), ...headers], body: text });
}
const call = (name: unknown, method = 'tools/call') => ({ jsonrpc: '2.0', id: 7, method, params: { name } });
const read = (uri: unknown, method = 'resources/read') => ({ jsonrpc: '2.0', id: 7, method, params: { uri } });
const subscribe = (resourceSubscriptions: readonly string[]) => ({
  ...{ jsonrpc: '2.0', id: 7, method: 'subscriptions/listen' },
  params: { notifications: { resourceSubscriptions } },
});

describe('operations', () => {
  it.each<readonly [string, unknown, string, number]>([
    ['a tool with its scope', call('list'), 'mcp files:read', 200],
    ['a tool without its scope', call('list'), 'mcp', 403],
    ['a prefix', call('delete-all'), 'mcp files:write', 200],
    ['a prefix without its scope', call('delete-all'), 'mcp files:read', 403],
    ['a call without a name', { ...call('list'), params: {} }, 'mcp files:read files:write', 403],
    ['a kind without a map', call('greet', 'prompts/get'), 'mcp files:read files:write', 403],
    ['a resource', read('file:///notes/1'), 'mcp notes', 200],
    ['a resource that no entry names', read('file:///etc/passwd'), 'mcp notes', 403],
    ['a resource with dot segments', read('file:///notes/%2e%2e/secret'), 'mcp notes', 400],
    ['a resource with a space', read('file:///notes/my file.txt'), 'mcp notes', 200],
    ['a subscription with dot segments', subscribe(['file:///notes/1', 'file:///notes/../a']), 'mcp notes', 400],
    ['a method without entries', { id: 1, method: 'tools/list' }, 'mcp', 200],
    ['a response', { id: 1, result: {} }, 'mcp', 200],
    ['a batch', [call('list'), call('delete-all')], 'mcp files:read files:write', 200],
    ['no scope of the policy', { id: 1, method: 'tools/list' }, 'files:read', 403],
  ])('%s → %4$i', async (_input, message, scope, status) =>
    expect((await post(message, { scope })).status).toBe(status),
  );

  it('a refused tool → a challenge with the scopes of policy and entries, and the metadata', async () => {
    const { headers } = await post([call('list'), call('delete-all')], { scope: 'mcp' });
    const challenge = headers.get('www-authenticate') ?? '';
    expect(challenge).toContain('scope="mcp files:read files:write"');
    expect(challenge).toContain('resource_metadata="https://api.test/.well-known/oauth-protected-resource/mcp"');
    expect(refusals.at(-1)).toBe('insufficient_scope');
  });

  it('no token → a challenge with the scopes of the policy, and the body is not read', async () => {
    const { status, headers } = await send(url, '/mcp', { method: 'POST', headers: json, body: '{' });
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toMatch(/scope="mcp"/);
  });

  it('an operation without an entry → access_denied without a challenge', async () => {
    const { status, headers, body } = await post(call('greet', 'prompts/get'));
    expect([status, headers.get('www-authenticate'), refusals.at(-1)]).toEqual([403, undefined, 'no_operation_policy']);
    expect(body).toContain('access_denied');
  });

  it('an admitted message → the server gets its body', async () =>
    expect(JSON.parse((await post(call('list'))).body)).toEqual(call('list')));

  it('metadata → every scope of policy and entries', async () => {
    const { answerMetadata } = createMcpAuth(server, { ...options, ...maps });
    const metadata = answerMetadata(new Request('https://api.test/.well-known/oauth-protected-resource/mcp'));
    expect(await metadata?.json()).toMatchObject({ scopes_supported: ['mcp', 'files:write', 'files:read', 'notes'] });
    const { answerMetadata: answerBare } = createMcpAuth(server, { ...options, policy: {} });
    const bare = await answerBare(new Request('https://api.test/.well-known/oauth-protected-resource/mcp'))?.json();
    expect(bare).not.toHaveProperty('scopes_supported');
  });
});

describe('messages', () => {
  it.each<readonly [string, string, Post, number, string]>([
    ['not JSON', 'x', {}, 400, 'malformed_message'],
    [
      'another type',
      JSON.stringify(call('list')),
      { headers: ['Content-Type', 'text/plain'] },
      400,
      'malformed_message',
    ],
    ['no type', JSON.stringify(call('list')), { headers: [] }, 400, 'malformed_message'],
    [
      'an encoding',
      JSON.stringify(call('list')),
      { headers: [...json, 'Content-Encoding', 'gzip'] },
      400,
      'malformed_message',
    ],
    ['more than 1 MiB', `{"a":"${'x'.repeat(1024 * 1024)}"}`, {}, 413, 'message_too_large'],
    ['another method with a body', 'x', { method: 'PUT' }, 400, 'malformed_message'],
  ])('%s → %4$i', async (_input, body, how, status, reason) => {
    expect((await post(body, how)).status).toBe(status);
    expect(refusals.at(-1)).toBe(reason);
  });

  it.each([
    ['a call', call('list'), 7],
    ['a batch', [call('list')], null],
  ])('headers that differ from %s → Header mismatch with the id %3$j', async (_input, message, id) => {
    const response = await post(message, { headers: [...json, 'Mcp-Method', 'tools/list'] });
    const error = { code: -32020, message: 'Header mismatch' };
    expect([response.status, JSON.parse(response.body)]).toEqual([400, { jsonrpc: '2.0', id, error }]);
  });

  it('a body that a parser has set → its operations', async () => {
    const app = express().use(express.json()).use(endpoint());
    const to = await serve(app);
    expect((await post(call('delete-all'), { to })).status).toBe(403);
    expect((await post(call('list'), { to })).status).toBe(200);
    expect((await post('{}', { to, headers: ['Content-Type', 'text/plain'] })).status).toBe(400);
  });
  it('a body that a parser has set as a string or as bytes → its operations', async () => {
    const to = await serve(
      express()
        .use(express.text({ type: '*/*' }))
        .use(endpoint()),
    );
    expect((await post(call('delete-all'), { to })).status).toBe(403);
    const raw = await serve(
      express()
        .use(express.raw({ type: '*/*' }))
        .use(endpoint()),
    );
    expect((await post(call('delete-all'), { to: raw })).status).toBe(403);
  });
});

it('the audit trail → scopes of the token, and the path', async () => {
  const decisions: AuditDecision[] = [];
  const audit = { isAvailable: () => true, record: (each: AuditDecision) => void decisions.push(each) };
  const audited = createResourceServer({ issuers: [issuer], audience: resource, audit });
  const { protect } = createMcpAuth(audited, { ...options, ...maps });
  const to = await serve((request, response) => protect(request, response, () => response.end()));
  for (const name of ['delete-all', 'delete-one', 'list']) await post(call(name), { to, scope: 'mcp files:write' });
  const granted = ['mcp', 'files:write'];
  expect(decisions.map(({ decision, scopes, path }) => [decision, [...(scopes ?? [])], path])).toEqual([
    ['admitted', granted, expect.stringMatching(/^\//)],
    ['admitted', granted, expect.stringMatching(/^\//)],
    ['refused', granted, expect.stringMatching(/^\//)],
  ]);
});

it('a replayed proof: an operation that is refused does not use the proof up', async () => {
  const strict = createResourceServer({ issuers: [issuer], audience: resource });
  const { protect } = createMcpAuth(strict, { ...options, ...maps });
  const to = await serve((request, response) => protect(request, response, () => response.end()));
  const client = issuer.dpopClient();
  const bound = client.token({ scope: 'mcp files:read' });
  const { authorization, dpop } = await client.headers({ method: 'POST', url: `${to}/mcp`, token: bound });
  const headers = ['Authorization', authorization, 'DPoP', dpop, ...json];
  const sendCall = (name: string) => send(to, '/mcp', { method: 'POST', headers, body: JSON.stringify(call(name)) });
  expect((await sendCall('delete-all')).status).toBe(403);
  expect((await sendCall('list')).status).toBe(200);
  expect((await sendCall('list')).status).toBe(401);
});

describe('requireBearerAuth of SDK 1.x', () => {
  const { policy: _policy, ...bare } = options;
  it.each<readonly [string, string, number]>([
    ['no token', '', 401],
    ['an expired token', issuer.flawed('expired'), 401],
    ['too few scopes', issuer.token({ scope: 'other' }), 403],
    ['a valid token', issuer.token({ scope: 'mcp' }), 200],
  ])('%s → %3$i', async (_input, bearer, status) => {
    const auth = createMcpAuth(server, { ...bare, policy: { scopes: ['mcp'] }, sdk: 1 });
    const to = await serve(
      express()
        .use(requireBearerAuth(auth.bearerAuth))
        .use((_request, response) => response.end()),
    );
    const headers = bearer === '' ? [] : ['Authorization', `Bearer ${bearer}`];
    expect((await send(to, '/mcp', { headers })).status).toBe(status);
  });

  it('with tools → reading bearerAuth throws a TypeError that names protect', () => {
    const auth = createMcpAuth(server, { ...options, ...maps });
    expect(() => auth.bearerAuth).toThrow(/protect/);
  });
});

it.each<readonly [string, object]>([
  ['an empty key', { tools: { '': {} } }],
  ['a * in the middle', { prompts: { 'a*b': {} } }],
  ['an entry that is not a policy', { resources: { 'a:b': { scope: ['x'] } } }],
  ['a URI that is not in normal form', { resources: { 'file:///a/../b': {} } }],
])('%s → TypeError', (_input, more) => expect(() => createMcpAuth(server, { ...options, ...more })).toThrow(TypeError));
