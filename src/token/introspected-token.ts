import { addEvidence, type Check, refuseBy } from '../check.ts';
import { AccessError } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import type { TokenRules, ValidToken } from './access-token.ts';
import { type ClaimFacts, claimChecks, type RegisteredClaims } from './claims.ts';
import { type CertificateBinding, readConfirmation } from './confirmation.ts';
import { readScopes } from './scope.ts';

/** What the answer of an introspection endpoint is held against. */
export interface IntrospectionRules {
  /** The profile is for JWTs only; an answer has none. */
  readonly token: TokenRules;
  /** Where the token is from; `iss` of an answer that has it is compared byte for byte. */
  readonly issuer: string;
  /** Whether `aud` must be there. `optional`: for an endpoint that calls no token active but those for this server. */
  readonly audience: 'required' | 'optional';
  readonly certificates: CertificateBinding;
}

const otherTypes: readonly string[] = ['refresh_token', 'id_token', 'n_a'];
const otherUses: ReadonlySet<unknown> = new Set(['refresh_token', 'id_token']);

/** Whether the answer is about a token of another kind (RFC 7662 §2.2, RFC 8693 §2.2.1: `N_A` is no token for access). */
function isOtherToken(answer: JsonObject): boolean {
  return otherUses.has(answer['token_use']) || otherTypes.some((type) => isType(answer, type));
}

/** Types are compared case-insensitively (RFC 6749 §5.1). */
function isType({ token_type: type }: JsonObject, wanted: string): boolean {
  return typeof type === 'string' && type.toLowerCase() === wanted;
}

/** What RFC 7662 §2.2 leaves to the server: when the token was issued, and, if so configured, for whom. */
function isLeftOut({ group }: Check<ClaimFacts>, answer: JsonObject, { audience }: IntrospectionRules): boolean {
  if (group === 'iat') return answer['iat'] === undefined;
  return group === 'aud' && answer['aud'] === undefined && audience === 'optional';
}

/**
 * Judges the answer about a token that is active (RFC 7662 §2.2) as the claims of a JWT are judged: issuer, where it is
 * named, audience, times, subject, scope, binding. A refusal is returned. `now` is in seconds.
 */
export function verifyIntrospectedToken(
  answer: JsonObject,
  rules: IntrospectionRules,
  now: number,
): ValidToken | AccessError {
  const { iss = rules.issuer } = answer;
  if (iss !== rules.issuer) return new AccessError('invalid_issuer');
  if (isOtherToken(answer)) return new AccessError('not_an_access_token');
  const facts: ClaimFacts = { claims: answer, rules: rules.token, now };
  for (const check of claimChecks) {
    if (!isLeftOut(check, answer, rules) && !check.passes(facts)) {
      return addEvidence(refuseBy(check, facts), { claims: answer });
    }
  }
  const claims = (answer['iss'] === undefined ? Object.freeze({ ...answer, iss }) : answer) as RegisteredClaims; // the checks are the proof
  const confirmation = readConfirmation(claims, rules.certificates);
  if (confirmation instanceof AccessError) return confirmation;
  const { jkt, certificate } = confirmation;
  // Bound, and nobody says to which key: it must not pass as a free one.
  if (jkt === undefined && isType(answer, 'dpop')) return new AccessError('malformed_cnf');
  return {
    claims,
    scopes: readScopes(claims, rules.token.scopeClaim),
    jkt,
    certificate,
    verifiedBy: { issuer: rules.token, kid: undefined },
  };
}
