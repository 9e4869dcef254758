import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { createNonces } from '../../../src/index.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const url = 'https://api.test/messages';
const issuer = createTestIssuer();
const shared = { issuers: [issuer], audience: issuer.audience };

/** Everything that usual ways of printing and copying make of a value. */
function spread(value: object): string {
  const copy: unknown = { ...value };
  const names = [...Object.keys(value), ...Object.getOwnPropertyNames(value)];
  return [JSON.stringify(value), inspect(value, { showHidden: true, depth: 9 }), inspect(copy), ...names].join('\n');
}

describe('the token of an access', () => {
  it('Bearer → the token as sent, and in no copy, JSON or print', async () => {
    const token = issuer.token({ scope: 'read:messages' });
    const server = createResourceServer(shared);
    const headers = { authorization: `Bearer ${token}` };
    // The second and third call find the token in the cache, which keeps no text of it.
    for (let call = 0; call < 3; call++) {
      const access = await server.authorize(new Request(url, { headers }));
      expect(access.token).toBe(token);
      expect(Object.keys(access)).toEqual(['claims', 'scopes', 'scheme']);
      for (const part of token.split('.')) expect(spread(access)).not.toContain(part);
    }
  });

  it('JSON and print → issuer, subject, client, scopes and permissions', async () => {
    const { issuer: iss } = issuer;
    const own = { permissionsClaim: ['realm_access', 'roles'], clientIdClaim: 'cid' };
    const server = createResourceServer({ ...shared, ...own });
    const claims = { sub: 'alice', scope: 'read write', cid: 'app', realm_access: { roles: ['admin'] } };
    const access = await server.authorize(new Request(url, { headers: { ...issuer.headers(claims) } }));
    const shown = { issuer: iss, subject: 'alice', client: 'app', scopes: ['read', 'write'], permissions: ['admin'] };
    expect(JSON.parse(JSON.stringify({ access }))).toEqual({ access: shown });
    expect(inspect(access)).toBe(inspect(shown));
  });

  it('DPoP, with and without a nonce for the client → the same', async () => {
    const client = issuer.dpopClient();
    const token = client.token();
    const plain = createResourceServer({ ...shared, dpop: { replay: 'off' } });
    const access = await plain.authorize(new Request(url, { headers: client.headers({ url, token }) }));
    expect(access.token).toBe(token);
    expect(Object.keys(access)).toEqual(['claims', 'scopes', 'scheme']);
    for (const part of token.split('.')) expect(spread(access)).not.toContain(part);

    let seconds = 1_700_000_000;
    const now = () => seconds;
    const nonces = createNonces({ secret: 's'.repeat(32), stepSeconds: 10 });
    const timed = createTestIssuer({ now });
    const server = createResourceServer({
      issuers: [timed],
      audience: timed.audience,
      now,
      dpop: { nonces, replay: 'off' },
    });
    const nonce = nonces.issue(now());
    seconds += 10;
    const other = timed.dpopClient();
    const bound = other.token();
    const headers = other.headers({ url, token: bound, nonce });
    const later = await server.authorize(new Request(url, { headers }));
    expect(later.token).toBe(bound);
    expect(Object.keys(later)).toEqual(['claims', 'scopes', 'scheme', 'dpopNonce']);
    for (const part of bound.split('.')) expect(spread(later)).not.toContain(part);
  });

  it('with claims of a schema → the token is present too', async () => {
    const server = createResourceServer(shared);
    const token = issuer.token();
    const schema = {
      '~standard': { version: 1, vendor: 'test', validate: async () => ({ value: { user: 'alice' } }) },
    } as const;
    const request = new Request(url, { headers: { authorization: `Bearer ${token}` } });
    const access = await server.authorize(request, { claims: schema });
    expect(access.claims).toEqual({ user: 'alice' });
    expect(access.token).toBe(token);
  });
});
