import { AccessError } from '../failures.ts';
import type { Credentials, Scheme } from '../http/credentials.ts';
import type { ValidToken } from '../token/access-token.ts';
import type { Claims } from '../token/claims.ts';
import type { Given } from '../token/token-policy.ts';

/** What a judged request may do: handed to the handler. */
export interface Access<C = Claims> {
  /** Those of the token, or what the schema of the policy has given. */
  readonly claims: C;
  /** The elements of `scope`. */
  readonly scopes: ReadonlySet<string>;
  readonly scheme: Scheme;
  /**
   * The token as it was sent, to be exchanged for another one (RFC 8693). Neither enumerable nor in JSON: whoever prints
   * or copies the access does not print or copy the token.
   */
  readonly token: string;
  /** A fresh nonce that the answer should carry in `DPoP-Nonce` (RFC 9449 §8.2). */
  readonly dpopNonce?: string;
}

/** A valid token, and the credentials that contained it. */
interface AdmittedToken {
  readonly token: ValidToken;
  readonly call: { readonly credentials: Credentials };
}

/** Access that this copy of the package has granted: no other value has the private field. */
class Admission implements Access<unknown> {
  readonly claims: unknown;
  readonly scopes: ReadonlySet<string>;
  readonly scheme: Scheme;
  // A private field costs less than a property that is not enumerable.
  readonly #token: string;
  readonly #valid: ValidToken;

  constructor({ token, call: { credentials } }: AdmittedToken, given: Given | undefined) {
    this.#valid = token;
    this.claims = given === undefined ? token.claims : given.claims;
    this.scopes = token.scopes;
    this.scheme = credentials.scheme;
    this.#token = credentials.token;
  }

  /** Returns the token of a value that is access; `undefined` for every other value. */
  static tokenOf(value: object): ValidToken | undefined {
    return #valid in value ? value.#valid : undefined;
  }

  get token(): string {
    return this.#token;
  }
}

/** Access with a nonce for the client. */
class AdmissionWithNonce extends Admission {
  readonly dpopNonce: string;

  constructor(admitted: AdmittedToken, given: Given | undefined, nonce: string) {
    super(admitted, given);
    this.dpopNonce = nonce;
  }
}

/** Grants access: the only place that creates it. */
export function grantAccess(
  admitted: AdmittedToken,
  given: Given | undefined,
  nonce: string | undefined,
): Access<unknown> {
  return nonce === undefined ? new Admission(admitted, given) : new AdmissionWithNonce(admitted, given, nonce);
}

/** Reports whether this copy of the package has granted a value as access. Every other value must be refused. */
export function isAccess(value: unknown): value is Access<unknown> {
  return typeof value === 'object' && value !== null && Admission.tokenOf(value) !== undefined;
}

/**
 * Returns when the token of an access expires, in seconds since the epoch: from then on it is refused. `undefined` for every
 * other value. Not read from `access.claims`, because a schema may have replaced them.
 */
export function expiryOf(value: unknown): number | undefined {
  const token = isAccess(value) ? Admission.tokenOf(value) : undefined;
  return token && token.claims.exp + token.verifiedBy.issuer.expTolerance;
}

/** Returns the refusal of a result that is not access. Any other value comes from a `judge` that was replaced: a defect. */
export function refusalOf(judged: unknown): AccessError | TypeError {
  return judged instanceof AccessError ? judged : new TypeError('judge returned neither its own access nor a refusal');
}
