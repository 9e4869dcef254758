import { randomUUID } from 'node:crypto';
import { apiScopes, clientIds, demoUser, tokenLifetime } from './defaults.ts';
import { makeSigningKey, type SigningKey, signAccessToken } from './signing-key.ts';
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

/** The claims that every access token of this provider has besides the registered ones. */
export function demoClaims(customClaim: string): Readonly<Record<string, unknown>> {
  return { permissions: apiScopes, email: demoUser.email, [customClaim]: 'a value of the local identity provider' };
}

/** Makes tokens that no token endpoint would issue: to see them refused. */
export function createMint(options: MintOptions): Mint {
  let unpublished: Promise<SigningKey> | undefined;
  const keys = {
    published: () => options.key,
    unknown: () => {
      unpublished ??= makeSigningKey();
      return unpublished;
    },
  } as const;
  return async ({ scope, audience, issuer, validity = 'current', key = 'published', jkt }) => {
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
    };
    return signAccessToken(await keys[key](), claims);
  };
}

/** The time claims of each validity, from the time of issue in seconds. */
const times = {
  current: (now: number) => ({ iat: now, exp: now + tokenLifetime }),
  expired: (now: number) => ({ iat: now - 2 * tokenLifetime, exp: now - tokenLifetime }),
  'not-yet-valid': (now: number) => ({ iat: now, nbf: now + tokenLifetime, exp: now + 2 * tokenLifetime }),
} as const;
