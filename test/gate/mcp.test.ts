import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createGate } from '../../src/gate/gate.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { lastHeaders, useUpstream } from '../support/gate-edge.ts';
import { openGate, useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { openService } from '../support/open-service.ts';
import { problemsOf, readValidRules } from '../support/read-rules.ts';
import { stall } from '../support/stall.ts';
import { type TestProvider, useTestProvider } from '../support/test-provider.ts';
import { open } from './proxied.ts';

const call = (name: unknown, method = 'tools/call') => ({ jsonrpc: '2.0', id: 7, method, params: { name } });
const read = (uri: string) => ({ jsonrpc: '2.0', id: 7, method: 'resources/read', params: { uri } });
const maps = {
  tools: { 'delete-*': { scopes: ['files:write'] }, '*': { scopes: ['files:read'] } },
  resources: { 'file:///notes/*': {} },
};

describe('as the proxy', async () => {
  const resource = 'http://localhost:9/mcp';
  const provider = await useTestProvider();
  const upstream = await useUpstream();
  upstream.answer = (_, outgoing) => void outgoing.end(`${upstream.received.at(-1)?.body.length}`);
  const UPSTREAM = `http://${upstream.address}`;
  const issuers = { staff: { issuer: provider.issuer, audience: resource } };
  const rules = [
    { id: 'mcp', path: '/mcp', scopes: ['mcp'], implies: { admin: ['files:write', 'mcp'] }, mcp: maps },
    { id: 'watched', path: '/watched', scopes: ['mcp'], mode: 'report', mcp: maps },
    { id: 'mixed', path: '/mixed', access: 'optional', scopes: ['mcp'], mcp: maps },
    { id: 'tenants', path: '/t/{tenant}', when: 'token.tenant == path.tenant', mcp: maps },
  ];
  const gate = await useGate(provider, { issuers, rules }, { UPSTREAM, MCP_SERVER: 'true', UPLOAD_TIMEOUT: '1' });
  const flagged = await openService({
    command: 'gate',
    args: ['--mcp', '--issuer', provider.issuer, '--audience', resource, '--upstream', UPSTREAM],
    environment: { NODE_EXTRA_CA_CERTS: provider.caFile },
  });
  afterAll(() => flagged.stop());

  interface Post {
    readonly path?: string;
    readonly scope?: string | null;
    readonly headers?: readonly string[];
    readonly to?: string;
  }
  const json = ['Content-Type', 'application/json'];
  const bearer = async (claims: object) => [
    'Authorization',
    `Bearer ${await provider.sign({ aud: resource, ...claims })}`,
  ];
  async function post(body: unknown, { path = '/mcp', scope = 'mcp files:read', headers = json, to }: Post = {}) {
    const token = scope === null ? [] : await bearer({ scope, tenant: 'acme' });
    const sent = typeof body === 'string' ? body : JSON.stringify(body);
    const before = upstream.received.length;
    const answer = await send(to ?? gate.url, path, { method: 'POST', headers: [...token, ...headers], body: sent });
    return { ...answer, arrived: upstream.received.slice(before), sent };
  }

  it.each<readonly [string, unknown, string | null, string, number]>([
    ['a tool with its scope', call('list'), 'mcp files:read', '/mcp', 200],
    ['a tool without its scope', call('delete-all'), 'mcp files:read', '/mcp', 403],
    ['implies of the rule', call('delete-all'), 'admin', '/mcp', 200],
    ['a kind without a map', call('greet', 'prompts/get'), 'mcp files:read', '/mcp', 403],
    ['no scope of the rule', { id: 1, method: 'tools/list' }, 'files:read', '/mcp', 403],
    ['a method without entries', { id: 1, method: 'tools/list' }, 'mcp', '/mcp', 200],
    ['a batch with one operation too many', [call('list'), call('delete-all')], 'mcp files:read', '/mcp', 403],
    ['a duplicate member', '{"method":"ping","method":"tools/call"}', 'mcp', '/mcp', 400],
    ['no body', '', 'mcp', '/mcp', 400],
    ['an anonymous operation', call('list'), null, '/mixed', 401],
    ['an anonymous tools/list', { id: 1, method: 'tools/list' }, null, '/mixed', 200],
    ['an anonymous malformed message', '[]', null, '/mixed', 400],
    ['report mode, a tool without its scope', call('delete-all'), 'mcp', '/watched', 200],
    ['report mode, a malformed message', '[]', 'mcp', '/watched', 200],
    ['a resource', read('file:///notes/a'), 'mcp', '/mcp', 200],
    ['a resource that a URL parser reads as another', read('file:///notes/.\t./a'), 'mcp', '/mcp', 400],
    ['a tool, its condition true', call('list'), 'files:read', '/t/acme', 200],
    ['a tool without its scope, its condition true', call('delete-all'), 'files:read', '/t/acme', 403],
    ['a tool, its condition false', call('list'), 'files:read', '/t/other', 403],
    ['a resource, its condition false', read('file:///notes/a'), '', '/t/other', 403],
    ['a method without entries, its condition false', { id: 1, method: 'tools/list' }, '', '/t/other', 403],
    ['a batch, its condition false', [call('list'), read('file:///notes/a')], 'files:read', '/t/other', 403],
    ['a batch, its condition true', [call('list'), read('file:///notes/a')], 'files:read', '/t/acme', 200],
  ])('%s → %4$i', async (_input, message, scope, path, status) => {
    const answer = await post(message, { scope, path });
    expect(answer.status).toBe(status);
    expect(answer.arrived.map(({ body }) => body)).toEqual(status === 200 ? [answer.sent] : []);
  });

  /** Starts a POST in chunks. */
  const startChunked = async (path: string, headers: Readonly<Record<string, string>> = {}): Promise<ClientRequest> => {
    const [, authorization = ''] = await bearer({ scope: 'mcp files:read' });
    const all = { authorization, 'content-type': 'application/json', ...headers };
    return requestHttp(`${gate.url}${path}`, { method: 'POST', headers: all });
  };
  const responseOf = async (request: ClientRequest): Promise<readonly unknown[]> => {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return [response.statusCode, await text(response)];
  };

  it('bytes of the body and its framing → unchanged, with spaces and escapes', async () => {
    const body = `  {"jsonrpc":"2.0", "id":1, "method":"tools\\/call","params":{"name":"list","arguments":{"n":1e2}}}\n`;
    const { arrived: got } = await post(body);
    expect(got[0]?.body).toBe(body);
    expect(lastHeaders(upstream)['content-length']).toBe(String(Buffer.byteLength(body)));
    const chunked = await startChunked('/mcp', { expect: '100-continue' });
    let continued = 0;
    chunked.on('continue', () => {
      continued++;
      chunked.write(body.slice(0, 10));
      setTimeout(() => chunked.end(body.slice(10)), 20);
    });
    chunked.flushHeaders();
    expect([...(await responseOf(chunked)), continued]).toEqual([200, String(body.length), 1]);
    expect(lastHeaders(upstream)).toMatchObject({ 'transfer-encoding': 'chunked' });
    expect(lastHeaders(upstream)['expect']).toBeUndefined();
  });

  it('a body above 1 MiB → 413; in report mode it passes complete', async () => {
    const large = JSON.stringify({ ...call('list'), pad: 'x'.repeat(1024 * 1024) });
    const refused = await post(large);
    expect([refused.status, refused.arrived]).toEqual([413, []]);
    const passed = await post(large, { path: '/watched' });
    expect([passed.status, passed.body]).toEqual([200, String(large.length)]);
    expect(passed.arrived[0]?.body).toBe(large);
    const chunked = await startChunked('/watched');
    for (let at = 0; at < large.length; at += 65_536) chunked.write(large.slice(at, at + 65_536));
    chunked.end();
    expect(await responseOf(chunked)).toEqual([200, String(large.length)]);
    expect(await gate.metrics()).toMatch(
      /portcullis_would_refuse_total\{rule="watched",reason="message_too_large"\} 2/,
    );
  });

  it('a header that differs from the body → 400 with the id', async () => {
    const answer = await post(call('delete-all'), { headers: [...json, 'Mcp-Method', 'tools/list'] });
    expect([answer.status, answer.json]).toEqual([
      400,
      { jsonrpc: '2.0', id: 7, error: { code: -32_020, message: 'Header mismatch' } },
    ]);
  });

  const headOf = async (length: number): Promise<string> =>
    `POST /mcp HTTP/1.1\r\nHost: a\r\n${(await bearer({ scope: 'mcp' })).join(': ')}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  it.each([
    ['that stops arriving', 0],
    ['that never completes', 50],
  ])('a message %s → 408 upload_timeout, and the next request is served', async (_name, milliseconds) => {
    const socket = open(gate.port, `${await headOf(1_000_000)}{"id":`);
    const sending = milliseconds > 0 ? setInterval(() => socket.write(' '), milliseconds) : undefined;
    const [head] = await once(socket, 'data');
    clearInterval(sending);
    socket.destroy();
    expect(String(head)).toMatch(/^HTTP\/1\.1 408 /);
    expect((await post(call('list'))).status).toBe(200);
  });

  it('a message arrives while this process stalls for longer than its time → passed on', async () => {
    const message = JSON.stringify({ id: 1, method: 'tools/list' });
    const head = await headOf(message.length);
    const socket = open(gate.port, head.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'));
    await once(socket, 'data');
    socket.write(message);
    stall(1200);
    const [answer] = await once(socket, 'data');
    socket.destroy();
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('a refused tool → challenge with every scope that the request needs, and the metadata, which the gate serves', async () => {
    const { headers } = await post(call('delete-all'));
    const challenge = headers.get('www-authenticate') ?? '';
    expect(challenge).toContain('scope="mcp files:write"');
    expect(challenge).toContain('resource_metadata="http://localhost:9/.well-known/oauth-protected-resource/mcp"');
    for (const path of ['/mcp', '']) {
      const served = await send(gate.url, `/.well-known/oauth-protected-resource${path}`);
      expect([served.status, served.headers.get('access-control-allow-origin'), served.json]).toEqual([
        200,
        '*',
        {
          resource,
          authorization_servers: [provider.issuer],
          scopes_supported: ['mcp', 'files:write', 'files:read'],
          bearer_methods_supported: ['header'],
        },
      ]);
    }
    const path = '/.well-known/oauth-protected-resource/mcp';
    expect((await send(gate.url, path, { method: 'OPTIONS' })).status).toBe(204);
    expect((await send(gate.url, path, { method: 'POST' })).status).toBe(405);
    expect((await send(gate.url, `${path}/other`)).status).toBe(403);
  });

  it('--mcp with flags alone → metadata, challenge, and every operation with the token', async () => {
    const to = flagged.url;
    const status = async (message: unknown, scope: string | null) => (await post(message, { to, scope })).status;
    expect(await status(call('list'), null)).toBe(401);
    expect(await status(call('list'), 'files:read')).toBe(200);
    expect(await status(call('delete-all'), 'files:read')).toBe(200);
    expect(await status(call('greet', 'prompts/get'), 'none')).toBe(200);
    expect((await send(to, '/other')).status).toBe(403);
    const { json: document } = await send(to, '/.well-known/oauth-protected-resource');
    expect(document).toMatchObject({ resource });
    expect(document).not.toHaveProperty('scopes_supported');
  });
});

const issuer = createTestIssuer();
const issuers = { staff: { issuer: 'https://id.example/', audience: 'orders' } };

describe('beside a proxy, with trustHeaders', () => {
  async function decide(headers: Readonly<Record<string, string>>, { scope = 'files:read', method = 'POST' } = {}) {
    const rules = [{ id: 'a', path: '/**', mcp: { ...maps, trustHeaders: true } }];
    const gate = createGate({
      rules: readValidRules({ issuers, rules }),
      openServer: () => createResourceServer({ issuers: [issuer], audience: issuer.audience }),
    });
    const all = { host: 'api.example', ...issuer.headers({ scope }), ...headers };
    const request = { method, url: 'https://api.example/mcp', target: '/mcp', headers: new Headers(all) };
    const decision = await gate.decide(request, { encrypted: true });
    return decision.kind === 'admitted' ? 'admitted' : (decision.error as { reason: string }).reason;
  }
  const revision = { 'MCP-Protocol-Version': '2026-07-28' };
  const headers = (method?: string, name?: string) => ({
    ...revision,
    ...(method !== undefined && { 'Mcp-Method': method }),
    ...(name !== undefined && { 'Mcp-Name': name }),
  });

  it.each<readonly [string, Readonly<Record<string, string>>, string]>([
    ['a tool with its scope', headers('tools/call', 'list'), 'admitted'],
    ['a tool without its scope', headers('tools/call', 'delete-all'), 'insufficient_scope'],
    ['an encoded tool', headers('tools/call', '=?base64?ZGVsZXRlLWFsbA==?='), 'insufficient_scope'],
    ['an encoding that is not canonical', headers('tools/call', '=?base64?ZGVs?'), 'mcp_header_mismatch'],
    ['a resource', headers('resources/read', 'file:///notes/1'), 'admitted'],
    ['a resource with dot segments', headers('resources/read', 'file:///notes/../a'), 'malformed_message'],
    ['a resource without an entry', headers('resources/read', 'file:///etc/passwd'), 'no_operation_policy'],
    ['a subscription, its URI in the body', headers('resources/subscribe', 'file:///notes/1'), 'no_operation_policy'],
    ['a kind without a map', headers('prompts/get', 'greet'), 'no_operation_policy'],
    ['a method without entries', headers('tools/list'), 'admitted'],
    ['no headers', {}, 'mcp_headers_missing'],
    ['no revision', { 'Mcp-Method': 'tools/list' }, 'mcp_headers_missing'],
    ['an older revision', { ...headers('tools/list'), 'MCP-Protocol-Version': '2025-11-25' }, 'mcp_headers_missing'],
    ['a revision that is not a date', { ...headers('tools/list'), 'MCP-Protocol-Version': 'z' }, 'mcp_headers_missing'],
    ['no method', headers(), 'mcp_headers_missing'],
    ['no name', headers('tools/call'), 'mcp_headers_missing'],
    ['an empty name', headers('tools/call', ''), 'mcp_headers_missing'],
    // Go compares these bytes with the UTF-8 of the body, Node decodes them as ISO 8859-1.
    ['a name beyond ASCII', headers('tools/call', 'l\u00c3\u00b6schen'), 'mcp_header_mismatch'],
    ['an alias of the name', { ...headers('tools/call', 'list'), Mcp_Name: 'delete-all' }, 'mcp_headers_missing'],
    [
      'an alias of the name in CGI',
      { ...headers('tools/call', 'list'), 'Mcp.Name': 'delete-all' },
      'mcp_headers_missing',
    ],
    [
      'an alias of the revision',
      { ...headers('tools/list'), "MCP-Protocol'Version": '2025-11-25' },
      'mcp_headers_missing',
    ],
    ['an alias of the method', { ...headers('tools/list'), mcp_method: 'tools/call' }, 'mcp_headers_missing'],
    ['a method twice', headers('tools/call, tools/list', 'list'), 'mcp_headers_missing'],
    ['a method twice, joined by another proxy', headers('tools/list,tools/call', 'list'), 'mcp_headers_missing'],
    ['a name twice', headers('tools/call', 'list, delete-all'), 'mcp_headers_missing'],
  ])('%s → admitted, or its reason', async (_input, given, expected) => {
    expect(await decide(given)).toBe(expected);
  });

  it.each<readonly [string, string, Readonly<Record<string, string>>, string]>([
    ['HEAD', 'HEAD', {}, 'no_operation_policy'],
    ['PUT', 'PUT', headers('tools/list'), 'no_operation_policy'],
    ['OPTIONS', 'OPTIONS', {}, 'no_operation_policy'],
    ['a WebSocket handshake', 'GET', { Upgrade: 'WebSocket', Connection: 'upgrade' }, 'no_operation_policy'],
    ['a handshake whose Upgrade a proxy has removed', 'GET', { 'Sec-WebSocket-Key': 'a' }, 'no_operation_policy'],
    [
      'Mcp-Name named by Connection',
      'POST',
      { ...headers('tools/call', 'list'), Connection: 'close, mcp-name' },
      'malformed_message',
    ],
    ['a completion', 'POST', headers('completion/complete'), 'no_operation_policy'],
  ])('%s → refused', async (_way, method, given, reason) => {
    expect(await decide(given, { method })).toBe(reason);
  });

  it.each(['GET', 'DELETE'])('%s without headers → the policy alone', async (method) => {
    expect(await decide({}, { method })).toBe('admitted');
  });
});

// Following each of these scopes to its end takes hours.
const cyclic = Object.fromEntries(
  Array.from({ length: 5000 }, (_, at) => [`s${at}`, [`s${at === 4999 ? 9 : at + 1}`]]),
);

it.each<readonly [string, object, object, string]>([
  ['no map', { mcp: { trustHeaders: true } }, {}, '"mcp" is not valid.'],
  ['access open', { access: 'open', mcp: maps }, {}, 'validates no token, so "mcp" has no effect'],
  ['a key that is not a prefix', { mcp: { tools: { 'a*b': {} } } }, {}, 'neither a name nor a prefix'],
  ['an empty key', { mcp: { tools: { '': {} } } }, {}, 'neither a name nor a prefix'],
  [
    'an entry of a tool that the schema drops',
    { mcp: { tools: { prototype: { scopes: ['x'] }, '*': {} } } },
    {},
    'cannot be a name',
  ],
  ['a scope that the schema drops', { mcp: maps, implies: { constructor: ['x'] } }, {}, 'cannot be a name'],
  ['a URI not in normal form', { mcp: { resources: { 'HTTPS://a.example/b': {} } } }, {}, 'https://a.example/b'],
  ['an unknown requirement', { mcp: { tools: { a: { scope: 'x' } } } }, {}, 'scope'],
  ['an empty list of actors', { actor: [] }, {}, '"actor" is not valid.'],
  ['a cycle in implies', { implies: { a: ['b'], b: ['a'] } }, {}, 'implies has a cycle'],
  ['a cycle after a chain of 5,000 in implies', { implies: cyclic, mcp: maps }, {}, 'implies has a cycle'],
  [
    'trustHeaders as the proxy',
    { mcp: { ...maps, trustHeaders: true } },
    { upstreams: { one: 'http://127.0.0.1:1' } },
    'Remove "trustHeaders"',
  ],
])('rules with %s → an error', (_name, rule, members, message) => {
  const rules = [{ id: 'a', path: '/**', ...rule }];
  expect(problemsOf({ issuers, ...members, rules }).join(' ')).toContain(message);
});

describe('startup', () => {
  const rules = { issuers, rules: [{ id: 'a', path: '/**', mcp: maps }] };
  const trusting = { issuers, rules: [{ id: 'a', path: '/**', mcp: { ...maps, trustHeaders: true } }] };
  const fake = { caFile: '/dev/null' } as TestProvider;
  it.each<readonly [string, object, Readonly<Record<string, string>>, string]>([
    ['mcp beside a proxy without trustHeaders', rules, {}, '"trustHeaders": true'],
    ['trustHeaders as the proxy', trusting, { UPSTREAM: 'http://127.0.0.1:1' }, 'Remove "trustHeaders"'],
    ['MCP, an audience not a URL', rules, { UPSTREAM: 'http://127.0.0.1:1', MCP_SERVER: 'true' }, 'https URL'],
  ])('%s → exit 78', async (_name, content, environment, message) => {
    const started = openGate(fake, content, environment);
    await expect(started).rejects.toMatchObject({ end: { code: 78 }, stderr: expect.stringContaining(message) });
  });

  it.each<readonly [string, readonly string[], string]>([
    ['--mcp without --upstream', ['--audience', 'https://a.example/mcp'], 'UPSTREAM'],
    ['--mcp with http elsewhere', ['--audience', 'http://a.example/mcp', '--upstream', 'http://127.0.0.1:1'], 'https'],
  ])('%s → exit 78', async (_name, args, message) => {
    const started = openService({ command: 'gate', args: ['--mcp', '--issuer', 'https://id.example/', ...args] });
    await expect(started).rejects.toMatchObject({ end: { code: 78 }, stderr: expect.stringContaining(message) });
  });
});
