import { AccessError, type Reason } from '../failures.ts';
import type { JsonObject } from './json.ts';

/** A profile that tokens are held to beyond the checks of every token: `rfc9068` demands all that RFC 9068 §2 does. */
export type TokenProfile = 'rfc9068';

const types: ReadonlySet<string> = new Set(['at+jwt', 'application/at+jwt']);

/** Claims that must be texts (RFC 9068 §2.2), in order; `iss`, `aud`, `exp` and `iat` every token must have. */
const texts: readonly (readonly [claim: string, reason: Reason])[] = [
  ['sub', 'malformed_sub'],
  ['client_id', 'malformed_client_id'],
  ['jti', 'malformed_jti'],
];

/** Refuses a JOSE header without the type of an access token (RFC 9068 §2.1, §4). */
export function enforceProfileType({ typ }: JsonObject): void {
  if (typeof typ !== 'string' || !types.has(typ.toLowerCase())) throw new AccessError('unsupported_typ');
}

/** Refuses claims that lack what the profile demands. */
export function enforceProfileClaims(claims: JsonObject): void {
  for (const [claim, reason] of texts) {
    if (typeof claims[claim] !== 'string') throw new AccessError(reason);
  }
}
