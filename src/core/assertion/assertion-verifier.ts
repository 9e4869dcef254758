import { normaliseUrl } from '../dpop/htu.ts';
import { AccessError, type Reason } from '../failures.ts';
import { isTime, type JsonObject, parseJsonObject } from '../jose/json.ts';
import type { JwkSet } from '../jose/jwk.ts';
import { findRefusedParameter, isKid, parseJws, readAlg, verifyJws } from '../jose/jws.ts';
import { createKeySet, findAll, type KeySet } from '../keys/key-set.ts';
import { createStaticKeySet } from '../keys/static-key-set.ts';
import {
  checkOptionMembers,
  isObject,
  isText,
  isWithin,
  type OptionCheck,
  type OptionMembers,
} from '../option-members.ts';
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
const maxTolerance = 60;
const text: OptionCheck = [isText, 'must be a non-empty string', 'required'];
const optionMembers: OptionMembers<AssertionVerifierOptions> = {
  ...{ issuer: text, audience: text, now: true },
  clockTolerance: [isWithin(0, maxTolerance), `must be seconds, 0 to ${maxTolerance}`],
  jwks: [
    (value) => typeof value === 'string' || isObject(value),
    'must be an https URL, a JWK set or a key set',
    'required',
  ],
};
const typeNames: ReadonlySet<unknown> = new Set([assertionType, `application/${assertionType}`]);

/** Creates a verifier. Throws `TypeError` for invalid options, and `ProviderError` for a JWK set without a usable key. */
export function createAssertionVerifier(options: AssertionVerifierOptions): AssertionVerifier {
  checkOptionMembers('createAssertionVerifier', options, optionMembers);
  const { issuer, audience, jwks, clockTolerance = 5, now = () => Date.now() / 1000 } = options;
  const keys = openKeys(jwks);

  return {
    async verify(assertion, request) {
      const { header, jws, payload } = readAssertion(assertion);
      const { alg, kid } = readHeader(header);
      if (payload['iss'] !== issuer) throw new AccessError('invalid_issuer');
      if (payload['aud'] !== audience) throw new AccessError('invalid_audience');
      if (keys.find(kid, alg) === undefined) await keys.refetch();
      const found = findAll(keys, kid, alg);
      if (found.length === 0) throw new AccessError(keys.usable() ? 'unknown_kid' : 'keys_unavailable');
      const algorithm = readAlg(alg, assertionAlgs);
      if (algorithm === undefined || !found.some((key) => verifyJws(jws, algorithm, key))) {
        throw new AccessError('invalid_signature');
      }
      checkTimes(payload, now(), clockTolerance);
      if (Object.hasOwn(payload, 'htm') || Object.hasOwn(payload, 'htu')) checkRequest(payload, request);
      return payload as AssertionClaims; // `iss`, `aud`, `iat` and `exp` were checked, the other members are the gate's
    },
  };
}

function openKeys(jwks: AssertionVerifierOptions['jwks']): KeySet {
  if (typeof jwks === 'string') return createKeySet({ jwksUri: jwks });
  return 'find' in jwks ? jwks : createStaticKeySet(jwks);
}

function readAssertion(assertion: unknown) {
  if (typeof assertion !== 'string' || assertion === '') throw new AccessError('missing_credentials');
  if (assertion.length > maxLength) throw new AccessError('token_too_large');
  const jws = parseJws(assertion);
  if (typeof jws === 'string') throw new AccessError('malformed_token');
  const payload = parseJsonObject(jws.payload);
  if (payload === undefined) throw new AccessError('malformed_claims');
  return { header: jws.header, jws, payload };
}

function readHeader(header: JsonObject): { readonly alg: string; readonly kid: string } {
  const { alg, typ, kid } = header;
  if (typeof alg !== 'string' || !assertionAlgs.has(alg)) throw new AccessError('unsupported_alg');
  if (typeof typ !== 'string' || !typeNames.has(typ.toLowerCase())) throw new AccessError('unsupported_typ');
  if (findRefusedParameter(header) !== undefined) throw new AccessError('unsupported_header');
  if (!isKid(kid)) throw new AccessError(kid === undefined ? 'missing_kid' : 'malformed_kid');
  return { alg, kid };
}

function checkTimes({ iat, exp }: JsonObject, now: number, tolerance: number): void {
  const refuse = (reason: Reason): never => {
    throw new AccessError(reason);
  };
  if (!isTime(exp)) refuse(exp === undefined ? 'missing_exp' : 'malformed_exp');
  else if (now >= exp + tolerance) refuse('expired');
  if (!isTime(iat)) refuse(iat === undefined ? 'missing_iat' : 'malformed_iat');
  else if (iat > now + tolerance) refuse('issued_in_future');
}

/** Compares the URL as DPoP does (RFC 9449 §4.3 (9)): normalised, without query and fragment. */
function checkRequest({ htm, htu }: JsonObject, request: AssertedRequest | undefined): void {
  if (request === undefined || htm !== request.method) throw new AccessError('assertion_request_mismatch');
  const expected = normaliseUrl(request.url);
  const received = typeof htu === 'string' ? normaliseUrl(htu) : undefined;
  if (expected === undefined || received !== expected) throw new AccessError('assertion_request_mismatch');
}
