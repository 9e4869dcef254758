import { type Check, refuseBy } from '../checks.ts';
import type { JsonObject } from '../jose/json.ts';
import { Refused } from '../refused.ts';
import type { TokenRules, ValidToken } from './access-token.ts';
import { type CertificateBinding, type ClaimFacts, claimChecks, readConfirmation, readRegistered } from './claims.ts';
import { readScopes } from './grants.ts';

export interface IntrospectionRules {
  /** The profile is for JWTs only; a response has none. */
  readonly token: TokenRules;
  /** Issuer of the token; `iss` of a response that has it is compared byte for byte. */
  readonly issuer: string;
  /** Rule for `aud`. `optional`: for an endpoint that reports as active only tokens for this server. */
  readonly audience: 'required' | 'optional';
  readonly certificates: CertificateBinding;
}

/** Values of `token_use` and `token_type` of other tokens (RFC 7662 §2.2, RFC 8693 §2.2.1: `N_A` is not for access). */
const otherUses: ReadonlySet<unknown> = new Set(['refresh_token', 'id_token']);
const otherTypes: ReadonlySet<string> = new Set(['refresh_token', 'id_token', 'n_a']);

/** Reports whether RFC 7662 §2.2 leaves a check to the server: the time of issue, and, if so configured, the audience. */
function isLeftOut({ group }: Check<ClaimFacts>, answer: JsonObject, { audience }: IntrospectionRules): boolean {
  if (group === 'iat') return answer['iat'] === undefined;
  return group === 'aud' && answer['aud'] === undefined && audience === 'optional';
}

/** Verifies the response about an active token (RFC 7662 §2.2) like the claims of a JWT. `now` is in seconds. */
export function verifyIntrospectedToken(
  answer: JsonObject,
  rules: IntrospectionRules,
  now: number,
): ValidToken | Refused {
  const { iss = rules.issuer } = answer;
  if (iss !== rules.issuer) return new Refused('invalid_issuer');
  // Types are compared case-insensitively (RFC 6749 §5.1).
  const type = typeof answer['token_type'] === 'string' ? answer['token_type'].toLowerCase() : '';
  if (otherUses.has(answer['token_use']) || otherTypes.has(type)) return new Refused('not_an_access_token');
  const facts: ClaimFacts = { claims: answer, rules: rules.token, now };
  const claims = readRegistered(answer['iss'] === undefined ? Object.freeze({ ...answer, iss }) : answer);
  const scopes = readScopes(claims, rules.token.scopeClaim);
  for (const check of claimChecks) {
    if (!isLeftOut(check, answer, rules) && !check.passes(facts)) {
      return refuseBy(check, facts).attest({ claims, scopes });
    }
  }
  const confirmation = readConfirmation(claims, rules.certificates);
  if (confirmation instanceof Refused) return confirmation;
  // Bound to an unknown key: it must not pass as an unbound token.
  if (confirmation.jkt === undefined && type === 'dpop') return new Refused('malformed_cnf');
  return { claims, scopes, ...confirmation, verifiedBy: { issuer: rules.token, kid: undefined } };
}
