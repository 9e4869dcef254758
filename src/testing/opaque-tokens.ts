import { randomBytes } from 'node:crypto';
import type { JsonObject } from '../jose/json.ts';
import type { Introspection } from '../token-status/introspection.ts';

/** The opaque tokens of an issuer, and the endpoint that knows them (RFC 7662). */
export interface OpaqueTokens {
  /** Makes a token that says nothing, for these claims. */
  mint(claims: JsonObject): string;
  /** From now on a token is not active. */
  revoke(token: string): void;
  /** What an endpoint answers about a token (RFC 7662 §2.2). */
  introspect(token: string | null): JsonObject;
  /** Asks as `createIntrospection` does, at an endpoint in the memory of this process. */
  createIntrospection(issuer: string): Promise<Introspection>;
}

/** No request leaves the process: the name is for whoever reads an error. */
const endpoint = 'https://introspection.test/introspect';

/** Makes the opaque tokens of an issuer. */
export function createOpaqueTokens(): OpaqueTokens {
  const active = new Map<string, JsonObject>();
  const introspect: OpaqueTokens['introspect'] = (token) => {
    const claims = active.get(String(token));
    return claims === undefined ? { active: false } : { ...claims, active: true };
  };
  const answer = async (_url: string, { body }: { readonly body?: string }): Promise<Response> =>
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
      // It stands on packages, which the kit loads only if it has to.
      const { createIntrospection } = await import('../token-status/introspection.ts');
      // Nothing is kept: a token that is revoked is refused at the next call.
      const kept = { maxSeconds: 0, inactiveSeconds: 0 };
      return createIntrospection({ endpoint, issuer, clientId: 'api', clientSecret: 'test', fetch: answer, ...kept });
    },
  };
}
