import { randomBytes } from 'node:crypto';
import type { JsonObject } from '../jose/json.ts';
import type { Introspection } from '../token-status/introspection.ts';

/** The opaque tokens of an issuer, and their introspection endpoint (RFC 7662). */
export interface OpaqueTokens {
  mint(claims: JsonObject): string;
  revoke(token: string): void;
  /** Returns the introspection response for a token (RFC 7662 §2.2). */
  introspect(token: string | null): JsonObject;
  /** Like `createIntrospection`, with an endpoint in the memory of this process. */
  createIntrospection(issuer: string): Promise<Introspection>;
}

/** No request leaves the process: the name appears in errors only. */
const endpoint = 'https://introspection.test/introspect';

export function createOpaqueTokens(): OpaqueTokens {
  const active = new Map<string, JsonObject>();
  const introspect: OpaqueTokens['introspect'] = (token) => {
    const claims = active.get(String(token));
    return claims === undefined ? { active: false } : { ...claims, active: true };
  };
  const respond = async (_url: string, { body }: { readonly body?: string }): Promise<Response> =>
    Response.json(introspect(new URLSearchParams(body).get('token')));
  return {
    mint(claims) {
      const token = randomBytes(32).toString('base64url');
      active.set(token, claims);
      return token;
    },
    revoke: (token) => void active.delete(token),
    introspect,
    async createIntrospection(issuer) {
      // It needs packages, which the kit loads on first use.
      const { createIntrospection } = await import('../token-status/introspection.ts');
      // Nothing is cached: a revoked token is refused at the next request.
      const kept = { maxSeconds: 0, inactiveSeconds: 0 };
      return createIntrospection({ endpoint, issuer, clientId: 'api', clientSecret: 'test', fetch: respond, ...kept });
    },
  };
}
