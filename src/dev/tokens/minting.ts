import { randomBytes, randomUUID } from 'node:crypto';
import { apiScopes, clientIds, demoUser, tokenLifetime } from '../provider/defaults.ts';
import { makeSigningKey, type SigningKey, signAccessToken } from '../provider/signing-key.ts';
import type { TokenOrder } from './token-order.ts';

/** What minted tokens are made from. */
export interface MintOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly customClaim: string;
  /** A key that the provider publishes. */
  readonly key: SigningKey;
  /** Seconds since the epoch. */
  readonly now: () => number;
}

/** Makes one access token, odd in the ordered way. */
export type Mint = (order: TokenOrder) => Promise<string>;

/** Makes tokens, and knows the opaque ones. */
export interface Minting {
  readonly mint: Mint;
  /** What an opaque token stands for (RFC 7662 §2.2). */
  introspect(token: string): Readonly<Record<string, unknown>>;
}

/** Opaque tokens that are remembered; the oldest is forgotten. */
const maxOpaque = 1000;

/** The claims that every access token of this provider has besides the registered ones. */
export function demoClaims(customClaim: string): Readonly<Record<string, unknown>> {
  return { permissions: apiScopes, email: demoUser.email, [customClaim]: 'a value of the local identity provider' };
}

/** Makes tokens that no token endpoint would issue: to see them refused. */
export function createMinting(options: MintOptions): Minting {
  const opaque = new Map<string, Readonly<Record<string, unknown>>>();
  let unpublished: Promise<SigningKey> | undefined;
  const keys = {
    published: () => options.key,
    unknown: () => {
      unpublished ??= makeSigningKey();
      return unpublished;
    },
  } as const;
  const mint: Mint = async (order) => {
    const { scope, audience, issuer, validity = 'current', key = 'published', jkt, form = 'jwt' } = order;
    const claims = {
      ...demoClaims(options.customClaim),
      iss: issuer ?? options.issuer,
      sub: clientIds.service,
      aud: audience ?? options.audience,
      client_id: clientIds.service,
      jti: randomUUID(),
      scope,
      cnf: jkt === undefined ? undefined : { jkt },
      ...times[validity](Math.floor(options.now())),
      ...order.claims,
    };
    const kept = Object.fromEntries(
      Object.entries(claims).filter(([, value]) => value !== null && value !== undefined),
    );
    if (form === 'jwt') return signAccessToken(await keys[key](), kept);
    const token = randomBytes(32).toString('base64url');
    const [oldest] = opaque.keys();
    if (opaque.size >= maxOpaque && oldest !== undefined) opaque.delete(oldest);
    opaque.set(token, kept);
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
        ? { active: true, token_type: tokenType(claims), ...claims }
        : { active: false };
    },
  };
}

/** RFC 9449 §6.2: a token that is bound to a key says so. */
function tokenType({ cnf }: Readonly<Record<string, unknown>>): string {
  return cnf === undefined ? 'Bearer' : 'DPoP';
}

/** The time claims of each validity, from the time of issue in seconds. */
const times = {
  current: (now: number) => ({ iat: now, exp: now + tokenLifetime }),
  expired: (now: number) => ({ iat: now - 2 * tokenLifetime, exp: now - tokenLifetime }),
  'not-yet-valid': (now: number) => ({ iat: now, nbf: now + tokenLifetime, exp: now + 2 * tokenLifetime }),
} as const;
