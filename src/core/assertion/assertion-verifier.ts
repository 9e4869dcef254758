import { createCheck, refuseByFirst } from '../checks.ts';
import { normaliseUrl } from '../dpop/htu.ts';
import { AccessError, type Reason } from '../failures.ts';
import { type JsonObject, parseJsonObject } from '../jose/json.ts';
import type { JwkSet } from '../jose/jwk.ts';
import { type Algorithm, type Jws, parseJws, readAlg, verifyJws } from '../jose/jws.ts';
import { createKeySet, findAll, type KeySet } from '../keys/key-set.ts';
import { createStaticKeySet } from '../keys/static-key-set.ts';
import { callable, checkOptionMembers, isObject, isText, isWithin, type OptionMembers } from '../option-members.ts';
import type { Refused } from '../refused.ts';
import { headerChecks } from '../token/access-token.ts';
import { type ClaimRules, claimChecks } from '../token/claims.ts';
import { type AssertionClaims, assertionAlgs, assertionType } from './assertion-claims.ts';

/** Options for createAssertionVerifier. */
export interface AssertionVerifierOptions {
  /** `issuer` of `assertion` in the gate's rules, compared byte for byte with `iss`. */
  readonly issuer: string;
  /** Identifier of this upstream, compared byte for byte with `aud`. */
  readonly audience: string;
  /** Keys of the gate: the https URL of its JWK set, the set, or a key set. */
  readonly jwks: string | JwkSet | KeySet;
  /** Seconds by which the clocks of gate and upstream may differ, 0 to 60. Default: 5. */
  readonly clockTolerance?: number;
  /** Seconds since the epoch. Default: the system clock. */
  readonly now?: () => number;
}

/** The request that carried an assertion. */
export interface AssertedRequest {
  /** HTTP method. */
  readonly method: string;
  /** URL that the client called, absolute: scheme, host and path as the gate received them. */
  readonly url: string;
}

/** Verifier of the assertions that a gate sends to an upstream. */
export interface AssertionVerifier {
  /**
   * Verifies the value of the assertion header. Rejects with an `AccessError`; its reason is `keys_unavailable` if the
   * gate's keys cannot be fetched. An assertion that is bound to a request requires `request`.
   */
  verify(assertion: string, request?: AssertedRequest): Promise<AssertionClaims>;
}

/** Characters of an assertion: the size of the largest header that Node accepts by default. */
const maxLength = 16_384;
const optionMembers: OptionMembers<AssertionVerifierOptions> = {
  issuer: [isText, 'must be a non-empty string', 'required'],
  audience: [isText, 'must be a non-empty string', 'required'],
  now: callable,
  clockTolerance: [isWithin(0, 60), 'must be seconds, 0 to 60'],
  jwks: [
    (value) => typeof value === 'string' || (isObject(value) && !Array.isArray(value)),
    'must be an https URL, a JWK set or a key set',
    'required',
  ],
};
const typeNames: ReadonlySet<unknown> = new Set([assertionType, `application/${assertionType}`]);
/** The checks of an access token, except its type. */
const assertionHeaderChecks: typeof headerChecks = headerChecks.map((check) => {
  if (check.id !== 'typ') return check;
  return createCheck('typ', ({ header: { typ } }) => typeof typ === 'string' && typeNames.has(typ.toLowerCase()));
});
const timeChecks = claimChecks.filter(({ group }) => group === 'exp' || group === 'iat');

/** Creates a verifier. Throws `TypeError` for invalid options, and `ProviderError` for a JWK set without a usable key. */
export function createAssertionVerifier(options: AssertionVerifierOptions): AssertionVerifier {
  checkOptionMembers('createAssertionVerifier', options, optionMembers);
  const { issuer, audience, jwks, clockTolerance = 5, now = () => Date.now() / 1000 } = options;
  const keys = openKeys(jwks);
  const tolerances = { expTolerance: clockTolerance, nbfTolerance: clockTolerance };
  const rules: ClaimRules = { ...tolerances, audiences: new Set([audience]), subject: 'optional' };

  return {
    async verify(assertion, request) {
      const jws = readAssertion(assertion);
      const { header } = jws;
      const claims = parseJsonObject(jws.payload) ?? refuse('malformed_claims');
      throwRefusal(refuseByFirst(assertionHeaderChecks, { header, algorithms: assertionAlgs }));
      const { alg, kid = refuse('missing_kid') } = header as JsonObject & { alg: string; kid?: string }; // as was checked
      if (claims['iss'] !== issuer) refuse('invalid_issuer');
      if (claims['aud'] !== audience) refuse('invalid_audience');
      if (keys.find(kid, alg) === undefined) await keys.refetch();
      const found = findAll(keys, kid, alg);
      if (found.length === 0) refuse(keys.usable() ? 'unknown_kid' : 'keys_unavailable');
      const algorithm = readAlg(alg) as Algorithm; // as was checked
      if (!found.some((key) => verifyJws(jws, algorithm, key))) refuse('invalid_signature');
      throwRefusal(refuseByFirst(timeChecks, { claims, rules, now: now() }));
      if (Object.hasOwn(claims, 'htm') || Object.hasOwn(claims, 'htu')) checkRequest(claims, request);
      return claims as AssertionClaims; // `iss`, `aud`, `iat` and `exp` were checked, the other members are the gate's
    },
  };
}

function refuse(reason: Reason): never {
  throw new AccessError(reason);
}

function throwRefusal(refused: Refused | undefined): void {
  if (refused !== undefined) throw refused.toError();
}

function openKeys(jwks: AssertionVerifierOptions['jwks']): KeySet {
  if (typeof jwks === 'string') return createKeySet({ jwksUri: jwks });
  return 'find' in jwks ? jwks : createStaticKeySet(jwks);
}

function readAssertion(assertion: unknown): Jws {
  if (typeof assertion !== 'string' || assertion === '') return refuse('missing_credentials');
  if (assertion.length > maxLength) return refuse('token_too_large');
  const jws = parseJws(assertion);
  return typeof jws === 'string' ? refuse('malformed_token') : jws;
}

/** Compares the URL as DPoP does (RFC 9449 §4.3 (9)): normalised, without query and fragment. */
function checkRequest({ htm, htu }: JsonObject, request: AssertedRequest | undefined): void {
  const expected = request && normaliseUrl(request.url);
  const received = typeof htu === 'string' ? normaliseUrl(htu) : undefined;
  if (expected === undefined || htm !== request?.method || received !== expected) refuse('assertion_request_mismatch');
}
