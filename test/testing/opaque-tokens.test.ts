import { describe, expect, it } from 'vitest';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, expectRefused } from '../../src/testing/index.ts';

const issuer = createTestIssuer({ alg: 'ES256' });
const introspection = await issuer.introspection();
const options = { issuers: [issuer], audience: issuer.audience, algorithms: ['ES256'] } as const;
const server = createResourceServer({ ...options, introspection });
const call = (token: string) => new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } });

describe('an opaque token', () => {
  it('an opaque token → admitted with its claims', async () => {
    const token = issuer.opaqueToken({ sub: 'alice', scope: 'read write', level: 3 });
    expect(token).toMatch(/^[\w-]{40,}$/);
    const { claims, scopes } = await server.authorize(call(token), { scopes: ['read'] });
    expect(claims).toMatchObject({ iss: issuer.issuer, sub: 'alice', level: 3 });
    expect([...scopes]).toEqual(['read', 'write']);
  });

  it('another audience, expired, without the scope → each its refusal', async () => {
    await expectRefused(server, call(issuer.opaqueToken({ aud: 'another' })), 'invalid_audience');
    await expectRefused(server, call(issuer.opaqueToken({ exp: 1 })), 'expired');
    await expectRefused(server, call(issuer.opaqueToken()), 'insufficient_scope', { policy: { scopes: ['read'] } });
  });

  it('revoked, or never minted → inactive_token', async () => {
    const token = issuer.opaqueToken();
    await server.authorize(call(token));
    issuer.revoke(token);
    await expectRefused(server, call(token), 'inactive_token');
    await expectRefused(server, call('never-minted'), 'inactive_token');
    await expectRefused(server, call(createTestIssuer().opaqueToken()), 'inactive_token');
  });

  it('without introspection → opaque_token', () =>
    expectRefused(createResourceServer(options), call(issuer.opaqueToken()), 'opaque_token'));

  it('a signed token → admitted as before', async () =>
    expect((await server.authorize(call(issuer.token({ sub: 'bob' })))).claims.sub).toBe('bob'));
});
