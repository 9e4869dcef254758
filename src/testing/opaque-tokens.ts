import { randomBytes } from 'node:crypto';
import type { Introspection } from '../core/introspection/introspection.ts';
import type { JsonObject } from '../core/jose/json.ts';

/** No request leaves the process: the name appears in errors only. */
const endpoint = 'https://introspection.test/introspect';

/** Opaque tokens of an issuer, and their introspection endpoint (RFC 7662). */
export type OpaqueTokens = ReturnType<typeof createOpaqueTokens>;

export function createOpaqueTokens() {
  const active = new Map<string, JsonObject>();
  const introspect = (token: string | null): JsonObject => {
    const claims = active.get(String(token));
    return claims === undefined ? { active: false } : { ...claims, active: true };
  };
  const respond = async (_url: string, { body }: { readonly body?: string }): Promise<Response> =>
    Response.json(introspect(new URLSearchParams(body).get('token')));
  return {
    mint(claims: JsonObject): string {
      const token = randomBytes(32).toString('base64url');
      active.set(token, claims);
      return token;
    },
    revoke: (token: string): void => void active.delete(token),
    introspect,
    async createIntrospection(issuer: string): Promise<Introspection> {
      // It needs packages, which the kit loads on first use.
      const { createIntrospection } = await import('../core/introspection/introspection.ts');
      // Nothing is cached: a revoked token is refused at the next request.
      const kept = { maxSeconds: 0, inactiveSeconds: 0 };
      return createIntrospection({ endpoint, issuer, clientId: 'api', clientSecret: 'test', fetch: respond, ...kept });
    },
  };
}
