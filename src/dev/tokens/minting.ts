import { randomBytes, randomUUID } from 'node:crypto';
import { apiScopes, clientIds, demoUser, tokenLifetime } from '../provider/defaults.ts';
import { makeSigningKey, type SigningKey, signAccessToken } from '../provider/signing-key.ts';
import type { TokenOptions } from './token-options.ts';

export interface MintOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly customClaim: string;
  readonly key: SigningKey;
  /** Current time in seconds since the epoch. */
  readonly now: () => number;
}

export type Mint = (options: TokenOptions) => Promise<string>;

export interface Minting {
  readonly mint: Mint;
  /** Introspection response for an opaque token (RFC 7662 §2.2). */
  introspect(token: string): Readonly<Record<string, unknown>>;
}

/** Event of a logout token (OpenID Connect Back-Channel Logout 1.0). */
const logoutEvents = { 'http://schemas.openid.net/event/backchannel-logout': {} };
/** Maximum number of stored opaque tokens. The oldest is evicted. */
const maxOpaque = 1000;

/** Private claims of every access token. */
export function demoClaims(customClaim: string): Readonly<Record<string, unknown>> {
  return { permissions: apiScopes, email: demoUser.email, [customClaim]: 'a value of the local identity provider' };
}

/** Issues tokens that the token endpoint would not issue, to see them refused. */
export function createMinting(options: MintOptions): Minting {
  const opaque = new Map<string, Readonly<Record<string, unknown>>>();
  let unpublished: Promise<SigningKey> | undefined;
  const findKey = (key: TokenOptions['key']): SigningKey | Promise<SigningKey> => {
    if (key !== 'unknown') return options.key;
    unpublished ??= makeSigningKey();
    return unpublished;
  };
  const mint: Mint = async (tokenOptions) => {
    const { scope, audience, issuer, validity = 'current', key, jkt, form = 'jwt' } = tokenOptions;
    const issued = Math.floor(options.now());
    if (form === 'logout') {
      const logout = { iss: options.issuer, aud: clientIds.app, iat: issued, exp: issued + 120, jti: randomUUID() };
      return signAccessToken(options.key, { ...logout, events: logoutEvents, ...tokenOptions.claims }, 'logout+jwt');
    }
    const claims = {
      ...demoClaims(options.customClaim),
      iss: issuer ?? options.issuer,
      sub: clientIds.service,
      aud: audience ?? options.audience,
      client_id: clientIds.service,
      jti: randomUUID(),
      scope,
      cnf: jkt === undefined ? undefined : { jkt },
      ...times[validity](issued),
      ...tokenOptions.claims,
    };
    const present = Object.fromEntries(
      Object.entries(claims).filter(([, value]) => value !== null && value !== undefined),
    );
    if (form === 'jwt') return signAccessToken(await findKey(key), present);
    const token = randomBytes(32).toString('base64url');
    const [oldest] = opaque.keys();
    if (opaque.size >= maxOpaque && oldest !== undefined) opaque.delete(oldest);
    opaque.set(token, present);
    return token;
  };
  return {
    mint,
    introspect(token) {
      const claims = opaque.get(token);
      const now = options.now();
      const { exp, nbf } = claims ?? {};
      const isCurrent = (typeof exp !== 'number' || exp > now) && (typeof nbf !== 'number' || nbf <= now);
      return claims !== undefined && isCurrent
        ? // RFC 9449 §6.2
          { active: true, token_type: claims['cnf'] === undefined ? 'Bearer' : 'DPoP', ...claims }
        : { active: false };
    },
  };
}

/** Time claims of each validity, for an issue time in seconds. */
const times = {
  current: (now: number) => ({ iat: now, exp: now + tokenLifetime }),
  expired: (now: number) => ({ iat: now - 2 * tokenLifetime, exp: now - tokenLifetime }),
  'not-yet-valid': (now: number) => ({ iat: now, nbf: now + tokenLifetime, exp: now + 2 * tokenLifetime }),
} as const;
