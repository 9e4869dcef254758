import { createServer } from 'node:http';
import { OAuthError, requireBearerAuth } from '@modelcontextprotocol/server';
import express from 'express';
import { beforeAll, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { createMcpAuth, type McpAuthOptions } from '../../src/adapters/mcp.ts';
import { createNonces } from '../../src/core/dpop/nonce.ts';
import { AccessError, failures, type Reason } from '../../src/core/failures.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../src/core/token/claims.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { listen } from '../support/listening.ts';
import { noKeys } from './scene.ts';

const resource = 'https://api.test/mcp';
const issuer = createTestIssuer({ audience: resource });
const server = createResourceServer({ issuers: [issuer], audience: resource });
const authorizationServers = [issuer.issuer];
const policy = { scopes: ['notes:read'] };
const options: McpAuthOptions = { resource, authorizationServers, policy };
const metadataUrl = 'https://api.test/.well-known/oauth-protected-resource/mcp';

const withoutKeys = createResourceServer({ issuers: [{ issuer: issuer.issuer, keys: noKeys }], audience: resource });

function verify(token: string, judge: ResourceServer<RegisteredClaims> = server, others: Partial<McpAuthOptions> = {}) {
  return createMcpAuth(judge, { ...options, ...others }).bearerAuth.verifier.verifyAccessToken(token);
}

/** What the verifier throws. */
async function refusalOf(verified: Promise<unknown>): Promise<unknown> {
  return verified.then(
    () => 'accepted',
    (error: unknown) => error,
  );
}

describe('the verifier', () => {
  it('a valid token → the members that the MCP packages require', async () => {
    const exp = Math.floor(Date.now() / 1000) + 60;
    const token = issuer.token({ scope: 'notes:read notes:write', client_id: 'editor', exp });
    const info = await verify(token);
    expect(info).toMatchObject({
      token,
      clientId: 'editor',
      scopes: ['notes:read', 'notes:write'],
      expiresAt: exp,
      resource: new URL(resource),
      extra: { scheme: 'Bearer', claims: { sub: 'test-subject' } },
    });
  });

  it.each([
    [{ client_id: undefined, azp: 'from-azp' }, 'from-azp'],
    [{ client_id: undefined }, 'test-subject'],
    [{ client_id: 1, azp: 'from-azp' }, 'from-azp'],
  ])('%j → client %s', async (claims, clientId) =>
    expect(await verify(issuer.token({ scope: 'notes:read', ...claims }))).toMatchObject({ clientId }),
  );

  it('a token with an actor → extra.actor', async () => {
    const token = issuer.token({ scope: 'notes:read', act: { sub: 'agent' } });
    expect(await verify(token)).toMatchObject({ extra: { actor: { sub: 'agent' } } });
  });

  it('a token without a client → an empty clientId', async () => {
    const lenient = createResourceServer({ issuers: [issuer], audience: resource, subject: 'optional' });
    const token = issuer.token({ scope: 'notes:read', client_id: undefined, sub: undefined });
    expect(await verify(token, lenient)).toMatchObject({ clientId: '' });
  });

  it.each([
    [[resource, 'https://other.test/'], new URL(resource)],
    [['https://api.test/', 'https://other.test/'], undefined],
    ['https://api.test/', undefined],
  ])('audience %j → resource %s', async (aud, expected) => {
    const other = createResourceServer({ issuers: [issuer], audience: [resource, 'https://api.test/'] });
    expect((await verify(issuer.token({ scope: 'notes:read', aud }), other)).resource).toEqual(expected);
  });

  it.each([
    ['expired', 'invalid_token', () => verify(issuer.flawed('expired'))],
    ['bound_token_as_bearer', 'invalid_token', () => verify(issuer.dpopClient().token())],
    ['insufficient_scope', 'insufficient_scope', () => verify(issuer.token({ scope: 'notes:write' }))],
    ['multiple_authorization_headers', 'invalid_request', () => verify('one, Bearer two')],
    ['keys_unavailable', 'server_error', () => verify(issuer.token(), withoutKeys)],
  ] as const)('%s → %s, in the words for clients', async (reason, code, call) => {
    const error = await refusalOf(call());
    expect(error).toBeInstanceOf(OAuthError);
    expect(error).toMatchObject({ code, message: failures[reason].description });
  });

  it('a refusal → onRefused is called with the reason', async () => {
    const reasons: Reason[] = [];
    const onRefused: McpAuthOptions['onRefused'] = ({ reason }) => reasons.push(reason);
    await refusalOf(verify(issuer.flawed('expired'), server, { onRefused }));
    expect(reasons).toEqual(['expired']);
    expectTypeOf<NonNullable<McpAuthOptions['onRefused']>>().parameter(0).toEqualTypeOf<AccessError>();
  });

  it('a defect → the same error is thrown, and onRefused gets it as the cause', async () => {
    const defect = new RangeError('a defect');
    const broken = createResourceServer({ issuers: [issuer], audience: resource });
    broken.judge = () => {
      throw defect;
    };
    const onRefused = vi.fn();
    expect(await refusalOf(verify(issuer.token(), broken, { onRefused }))).toBe(defect);
    expect(onRefused.mock.lastCall).toMatchObject([{ reason: 'unexpected', cause: defect }]);
    expect(onRefused.mock.lastCall?.[0]).toBeInstanceOf(AccessError);
  });

  it('without a policy → every valid token; no scope in the challenge', async () => {
    const { bearerAuth } = createMcpAuth(server, { resource, authorizationServers });
    expect(bearerAuth.requiredScopes).toEqual([]);
    expect(await bearerAuth.verifier.verifyAccessToken(issuer.token())).toMatchObject({ scopes: [] });
  });

  it('the web-standard middleware of the MCP package → challenge with scope and metadata', async () => {
    const judge = requireBearerAuth(createMcpAuth(server, options).bearerAuth);
    const refused = await judge(new Request(resource, { headers: issuer.headers() }));
    expect(refused).toBeInstanceOf(Response);
    expect((refused as Response).status).toBe(403); // just checked
    expect((refused as Response).headers.get('www-authenticate')).toBe(
      `Bearer error="insufficient_scope", error_description="The access token lacks a required scope.", scope="notes:read", resource_metadata="${metadataUrl}"`,
    );
    expect(await judge(new Request(resource, { headers: issuer.headers(policyScope) }))).toMatchObject({
      resourceMetadataUrl: metadataUrl,
    });
  });
});

const policyScope = { scope: 'notes:read' };

describe('the metadata', () => {
  const { answerMetadata } = createMcpAuth(server, { ...options, metadata: { resource_name: 'Notes' } });
  const ask = (path: string, method = 'GET') => answerMetadata(new Request(`https://api.test${path}`, { method }));

  it.each([
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-protected-resource/mcp',
    '/.well-known/oauth-protected-resource/mcp/',
  ])('%s → the document, for any origin', async (path) => {
    const answer = ask(path);
    expect(answer?.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer?.headers.get('content-type')).toBe('application/json');
    expect(await answer?.json()).toEqual({
      resource,
      authorization_servers: authorizationServers,
      scopes_supported: ['notes:read'],
      bearer_methods_supported: ['header'],
      resource_name: 'Notes',
    });
  });

  it.each(['/', '/mcp', '/.well-known/oauth-protected-resource/other', '/.well-known/oauth-protected-resourcemcp'])(
    '%s → not ours',
    (path) => expect(ask(path)).toBeUndefined(),
  );

  it("scopesSupported other than the policy's; none → no member", async () => {
    const documentOf = (others: Partial<McpAuthOptions>) =>
      createMcpAuth(server, { resource, authorizationServers, ...others })
        .answerMetadata(new Request(metadataUrl))
        ?.json();
    expect(await documentOf({ policy, scopesSupported: ['a', 'b'] })).toMatchObject({ scopes_supported: ['a', 'b'] });
    expect(await documentOf({})).not.toHaveProperty('scopes_supported');
  });

  it('anyScope → clients may request each scope, and requireBearerAuth requires none', async () => {
    const auth = createMcpAuth(server, { resource, authorizationServers, policy: { anyScope: ['a', 'b'] } });
    expect(await auth.answerMetadata(new Request(metadataUrl))?.json()).toMatchObject({ scopes_supported: ['a', 'b'] });
    expect(auth.bearerAuth.requiredScopes).toEqual([]);
    expect(await auth.bearerAuth.verifier.verifyAccessToken(issuer.token({ scope: 'b' }))).toMatchObject({
      scopes: ['b'],
    });
    const refused = auth.bearerAuth.verifier.verifyAccessToken(issuer.token({ scope: 'c' }));
    expect(await refusalOf(refused)).toMatchObject({ code: 'insufficient_scope' });
  });

  it('a resource at the root → one path', () => {
    const root = createMcpAuth(server, { resource: 'https://api.test/', authorizationServers });
    expect(root.bearerAuth.resourceMetadataUrl).toBe('https://api.test/.well-known/oauth-protected-resource');
    expect(root.answerMetadata(new Request(metadataUrl))).toBeUndefined();
  });
});

describe('over sockets, on Express', () => {
  const app = express();
  const listener = createServer(app);
  let url: string;
  let auth: ReturnType<typeof createMcpAuth>;
  let strict: ResourceServer;

  beforeAll(async () => {
    const { origin, close } = await listen(listener);
    url = `${origin}/mcp`;
    strict = createResourceServer({ issuers: [issuer], audience: resource });
    auth = createMcpAuth(strict, { ...options, resource: url.replace('127.0.0.1', 'localhost') });
    const show: express.RequestHandler = (request, response) => {
      response.json({ auth: (request as { readonly auth?: unknown }).auth }); // set by `protect`
    };
    app.use(auth.serveMetadata);
    app.use('/without-keys', createMcpAuth(withoutKeys, options).protect, show);
    app.use('/mcp', auth.protect, show);
    return close;
  });

  it('a token → passed on with its AuthInfo', async () => {
    const answer = await fetch(url, { method: 'POST', headers: issuer.headers(policyScope) });
    expect(await answer.json()).toMatchObject({ auth: { clientId: 'test-client', scopes: ['notes:read'] } });
  });

  it('a bound token with its proof → passed on; the proof again → 401', async () => {
    const call = { url, method: 'POST', ...policyScope };
    const headers = issuer.dpopClient().headers(call);
    const answer = await fetch(url, { method: 'POST', headers });
    expect(await answer.json()).toMatchObject({
      auth: { token: headers.authorization.slice('DPoP '.length), extra: { scheme: 'DPoP' } },
    });
    expect((await fetch(url, { method: 'POST', headers })).status).toBe(401);
  });

  it('no token → 401 whose challenges name scope and metadata', async () => {
    const answer = await fetch(url, { method: 'POST' });
    expect(answer.status).toBe(401);
    const challenge = answer.headers.get('www-authenticate') ?? '';
    expect(challenge).toMatch(/^Bearer realm="[^"]*", scope="notes:read", resource_metadata="([^"]*)", DPoP /);
    const found = /resource_metadata="([^"]*)"/.exec(challenge)?.[1] ?? '';
    expect(await (await fetch(found)).json()).toMatchObject({ scopes_supported: ['notes:read'] });
  });

  it('a remote store, and a handler that throws → next is called with the error', async () => {
    const remote = createResourceServer({
      issuers: [issuer],
      audience: resource,
      dpop: { replay: { witness: async () => true } },
    });
    const { protect } = createMcpAuth(remote, options);
    app.use('/remote', (request, response) =>
      protect(request, response, (error) => {
        if (error === undefined) throw new Error('a defect behind');
        response.status(500).end(String(error));
      }),
    );
    const remoteUrl = new URL('/remote', url.replace('127.0.0.1', 'localhost')).href;
    const headers = issuer.dpopClient().headers({ url: remoteUrl, method: 'POST', ...policyScope });
    const answer = await fetch(remoteUrl, { method: 'POST', headers });
    expect([answer.status, await answer.text()]).toEqual([500, 'Error: a defect behind']);
  });

  it('keys unavailable → 503', async () => {
    const answer = await fetch(new URL('/without-keys', url), { headers: issuer.headers() });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
  });

  it('every other path → passed on; a wrong method on the metadata → 405', async () => {
    expect((await fetch(new URL('/other', url))).status).toBe(404);
    const answer = await fetch(new URL('/.well-known/oauth-protected-resource', url), { method: 'POST' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });
});

describe('over sockets, on Node alone', () => {
  const nonces = createNonces({ secret: 'a secret of thirty-two bytes, or more', stepSeconds: 2 });
  let start = 0;
  let later = 0;
  const demanding = createResourceServer({
    issuers: [issuer],
    audience: resource,
    dpop: { mode: 'required', nonces },
    now: () => start + later,
  });
  const { protect, serveMetadata } = createMcpAuth(demanding, { resource, authorizationServers });
  const listener = createServer((request, response) =>
    serveMetadata(request, response, () => protect(request, response, () => response.end('handed on'))),
  );
  let url: string;

  beforeAll(async () => {
    const { origin, close } = await listen(listener);
    url = `${origin}/mcp`;
    return close;
  });

  it('a required nonce → in the response; with it → passed on with the next one', async () => {
    // Here and not above: on a busy machine a proof that is made now would be in the future by then.
    start = Math.floor(Date.now() / 2000) * 2;
    const client = issuer.dpopClient();
    const first = await fetch(url, { headers: client.headers({ url }) });
    expect(first.status).toBe(401);
    const nonce = first.headers.get('dpop-nonce') ?? undefined;
    later = 2;
    const second = await fetch(url, { headers: client.headers({ url, nonce }) });
    expect(await second.text()).toBe('handed on');
    expect(second.headers.get('dpop-nonce')).not.toBe(nonce);
    expect(second.headers.get('dpop-nonce')).toMatch(/^[\w-]{32}$/);
  });

  it('the URL as sent, with its query → the metadata', async () => {
    const answer = await fetch(new URL('/.well-known/oauth-protected-resource?a', url));
    expect(await answer.json()).toMatchObject({ resource });
  });
});

describe('invalid options → TypeError that names the fix', () => {
  it.each<[string, Partial<McpAuthOptions>, RegExp]>([
    ['a resource that is no URL', { resource: '/mcp' }, /resource: write an absolute https URL/],
    ['a policy that names no scope', { policy: { scopes: [] } }, /policy: scopes must be a list/],
    ['no authorization server', { authorizationServers: [] }, /name at least one issuer/],
    ['scopes as a string', { scopesSupported: 'a' } as object, /^scopesSupported: write a list of scopes/],
    ['tools that are null', { tools: null } as object, /^tools: write an object, as in/],
    ['a version of the SDK that does not exist', { sdk: 3 } as object, /^sdk: write 1 or 2/],
    ['onRefused that is not a function', { onRefused: 'log' } as object, /^onRefused: write a function/],
  ])('%s', (_name, wrong, message) => {
    expect(() => createMcpAuth(server, { ...options, ...wrong })).toThrow(TypeError);
    expect(() => createMcpAuth(server, { ...options, ...wrong })).toThrow(message);
  });

  it.each(['http://localhost:1/mcp', 'http://127.0.0.1/mcp', 'http://[::1]:3000/mcp'])('%s → accepted', (local) =>
    expect(() => createMcpAuth(server, { ...options, resource: local })).not.toThrow(),
  );
});
