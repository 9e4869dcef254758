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
  readonly token: Pick<ValidToken, 'claims' | 'scopes'>;
  readonly call: { readonly credentials: Credentials };
}

/** Access that this copy of the package has granted: no other value has the private field. */
class Admission implements Access<unknown> {
  readonly claims: unknown;
  readonly scopes: ReadonlySet<string>;
  readonly scheme: Scheme;
  // A private field costs less than a property that is not enumerable.
  readonly #token: string;

  constructor({ token: { claims, scopes }, call: { credentials } }: AdmittedToken, given: Given | undefined) {
    this.claims = given === undefined ? claims : given.claims;
    this.scopes = scopes;
    this.scheme = credentials.scheme;
    this.#token = credentials.token;
  }

  static created(value: object): boolean {
    return #token in value;
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
  return typeof value === 'object' && value !== null && Admission.created(value);
}

/** Returns the refusal of a result that is not access. Any other value comes from a `judge` that was replaced: a defect. */
export function refusalOf(judged: unknown): AccessError | TypeError {
  return judged instanceof AccessError ? judged : new TypeError('judge returned neither its own access nor a refusal');
}
