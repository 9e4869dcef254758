import { type Check, createCheck } from '../check.ts';
import type { JsonObject } from '../jose/json.ts';
import type { ClaimFacts } from './claims.ts';

/** A profile that tokens are held to beyond the checks of every token: `rfc9068` demands all that RFC 9068 §2 does. */
export type TokenProfile = 'rfc9068';

const types: ReadonlySet<string> = new Set(['at+jwt', 'application/at+jwt']);

/** Claims that must be texts (RFC 9068 §2.2), in order. `iss`, `aud`, `exp` and `iat` every token must have. */
export const profileChecks: readonly Check<Pick<ClaimFacts, 'claims'>>[] = [
  createCheck('profile_sub', 'malformed_sub', ({ claims }) => typeof claims['sub'] === 'string', { group: 'sub' }),
  createCheck('client_id', 'malformed_client_id', ({ claims }) => typeof claims['client_id'] === 'string'),
  createCheck('jti', 'malformed_jti', ({ claims }) => typeof claims['jti'] === 'string'),
];

/** Whether a JOSE header has the type of an access token (RFC 9068 §2.1, §4). */
export function isProfileType({ typ }: JsonObject): boolean {
  return typeof typ === 'string' && types.has(typ.toLowerCase());
}
