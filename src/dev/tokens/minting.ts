import { randomUUID } from 'node:crypto';
import { clientIds, tokenLifetime } from '../provider/defaults.ts';
import { makeSigningKey, type SigningKey, signAccessToken } from '../provider/signing-key.ts';
import type { TokenOptions } from './token-options.ts';

export interface MintOptions {
  /** With the trailing slash. */
  readonly issuer: string;
  readonly audience: string;
  readonly customClaim: string;
  readonly signingKey: SigningKey;
  /** Current time in seconds since the epoch. */
  readonly now: () => number;
}

export type Mint = (options: TokenOptions) => Promise<string>;

/** Event of a logout token (OpenID Connect Back-Channel Logout 1.0). */
const logoutEvents = { 'http://schemas.openid.net/event/backchannel-logout': {} };

/** Private claims of every access token. */
export function demoClaims(customClaim: string): Readonly<Record<string, unknown>> {
  return { [customClaim]: 'a value of the local identity provider' };
}

/** Issues tokens that the token endpoint would not issue, to see them refused. */
export function createMint(options: MintOptions): Mint {
  let unpublished: Promise<SigningKey> | undefined;
  const findKey = (key: TokenOptions['key']): SigningKey | Promise<SigningKey> => {
    if (key !== 'unknown') return options.signingKey;
    unpublished ??= makeSigningKey();
    return unpublished;
  };
  return async (tokenOptions) => {
    const { scope, audience, issuer, validity = 'current', key, jkt, form = 'jwt' } = tokenOptions;
    const issued = Math.floor(options.now());
    if (form === 'logout') {
      const logout = { iss: options.issuer, aud: clientIds.app, iat: issued, exp: issued + 120, jti: randomUUID() };
      return signAccessToken(
        options.signingKey,
        { ...logout, events: logoutEvents, ...tokenOptions.claims },
        'logout+jwt',
      );
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
    return signAccessToken(await findKey(key), present);
  };
}

/** Time claims of each validity, for an issue time in seconds. */
const times = {
  current: (now: number) => ({ iat: now, exp: now + tokenLifetime }),
  expired: (now: number) => ({ iat: now - 2 * tokenLifetime, exp: now - tokenLifetime }),
  'not-yet-valid': (now: number) => ({ iat: now, nbf: now + tokenLifetime, exp: now + 2 * tokenLifetime }),
} as const;
