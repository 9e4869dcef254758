import { type Check, refuseBy } from '../check.ts';
import { AccessError } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import type { TokenRules, ValidToken } from './access-token.ts';
import { type ClaimFacts, type Claims, claimChecks } from './claims.ts';
import { type CertificateBinding, readConfirmation } from './confirmation.ts';
import { parseScope } from './scope.ts';

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
  const facts: ClaimFacts = { claims: answer, rules: rules.token, now };
  for (const check of claimChecks) {
    if (!isLeftOut(check, answer, rules) && !check.passes(facts)) return refuseBy(check, facts);
  }
  const claims = (answer['iss'] === undefined ? Object.freeze({ ...answer, iss }) : answer) as Claims; // the checks are the proof
  const confirmation = readConfirmation(claims, rules.certificates);
  if (confirmation instanceof AccessError) return confirmation;
  const { jkt, certificate } = confirmation;
  return {
    claims,
    scopes: parseScope(claims.scope),
    jkt,
    certificate,
    verifiedBy: { issuer: rules.token, kid: undefined },
  };
}
