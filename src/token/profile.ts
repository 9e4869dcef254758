import type { Reason } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';

/** A profile that tokens are held to beyond the checks of every token: `rfc9068` demands all that RFC 9068 §2 does. */
export type TokenProfile = 'rfc9068';

const types: ReadonlySet<string> = new Set(['at+jwt', 'application/at+jwt']);

/** Claims that must be texts (RFC 9068 §2.2), in order; `iss`, `aud`, `exp` and `iat` every token must have. */
const texts: readonly (readonly [claim: string, reason: Reason])[] = [
  ['sub', 'malformed_sub'],
  ['client_id', 'malformed_client_id'],
  ['jti', 'malformed_jti'],
];

/** Whether a JOSE header has the type of an access token (RFC 9068 §2.1, §4). */
export function isProfileType({ typ }: JsonObject): boolean {
  return typeof typ === 'string' && types.has(typ.toLowerCase());
}

/** The first thing that the claims lack of what the profile demands. */
export function findProfileDefect(claims: JsonObject): Reason | undefined {
  return texts.find(([claim]) => typeof claims[claim] !== 'string')?.[1];
}
