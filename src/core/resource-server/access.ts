import { attempt } from '../attempt.ts';
import { AccessError } from '../failures.ts';
import type { Credentials, Scheme } from '../http/credentials.ts';
import { checkOptionMembers } from '../option-members.ts';
import type { Refused } from '../refused.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { type Actor, readActor, readPermissions } from '../token/grants.ts';
import type { Given } from '../token/token-policy.ts';
import { refuseEnded, type TokenWatchOptions, type WatchedToken, watchToken } from './token-watch.ts';

/** The access granted to a request, passed to the handler. */
export interface Access<C = Claims> {
  /** Claims of the token, or the output of the policy's schema. */
  readonly claims: C;
  /** The elements of `scope`. */
  readonly scopes: ReadonlySet<string>;
  /** The elements of the claim, or claims, of `permissionsClaim`. Not enumerable, like `token`. */
  readonly permissions: ReadonlySet<string>;
  readonly scheme: Scheme;
  /**
   * The token as the client sent it, for token exchange (RFC 8693). Neither enumerable nor in JSON, so that printing or
   * copying the access does not print or copy the token.
   */
  readonly token: string;
  /** Outermost actor of a delegated token (RFC 8693 §4.1). Not enumerable, like `token`. */
  readonly actor?: Actor | undefined;
  /** A fresh nonce for the `DPoP-Nonce` header of the response (RFC 9449 §8.2). */
  readonly dpopNonce?: string;
}

/** A valid token, the credentials that contained it, and what may end it. */
export interface AdmittedToken extends WatchedToken {
  readonly credentials: Credentials;
  /** Clock of the server: seconds since the epoch. */
  readonly now: () => number;
}

/** Access that this copy of the package has granted: no other value has the private field. */
class Admission implements Access<unknown> {
  readonly claims: unknown;
  readonly scopes: ReadonlySet<string>;
  readonly scheme: Scheme;
  /** Only with a nonce for the client. */
  declare readonly dpopNonce?: string;
  // A private field costs less than a property that is not enumerable.
  readonly #admitted: AdmittedToken;

  constructor(admitted: AdmittedToken, given: Given | undefined, nonce: string | undefined) {
    const { token, credentials } = admitted;
    this.#admitted = admitted;
    this.claims = given === undefined ? token.claims : given.claims;
    this.scopes = token.scopes;
    this.scheme = credentials.scheme;
    if (nonce !== undefined) this.dpopNonce = nonce;
  }

  /** Returns the facts of a value that is access; `undefined` for every other value. */
  static admittedOf(value: object): AdmittedToken | undefined {
    return #admitted in value ? value.#admitted : undefined;
  }

  get token(): string {
    return this.#admitted.credentials.token;
  }

  get permissions(): ReadonlySet<string> {
    const { claims, verifiedBy } = this.#admitted.token;
    return readPermissions(claims, verifiedBy.issuer.permissionsClaim);
  }

  get actor(): Actor | undefined {
    return readActor(this.#admitted.token.claims);
  }
}

/** Grants access: the only place that creates it. */
export function grantAccess(
  admitted: AdmittedToken,
  given: Given | undefined,
  nonce: string | undefined,
): Access<unknown> {
  return new Admission(admitted, given, nonce);
}

/** Reports whether this copy of the package has granted a value as access. Every other value must be refused. */
export function isAccess(value: unknown): value is Access<unknown> {
  return findAdmitted(value) !== undefined;
}

/** Returns the facts of a value that is access; `undefined` for every other value. */
export function findAdmitted(value: unknown): AdmittedToken | undefined {
  return typeof value === 'object' && value !== null ? Admission.admittedOf(value) : undefined;
}

/** Returns the claims of the token of an access, even if a schema has replaced `access.claims`. */
export function verifiedClaimsOf(access: Access<unknown>): RegisteredClaims | undefined {
  return Admission.admittedOf(access)?.token.claims;
}

/** Returns the refusal of a result that is not access. Any other value comes from a `judge` that was replaced: a defect. */
export function refusalOf(judged: unknown): AccessError | TypeError {
  return judged instanceof AccessError ? judged : new TypeError('judge returned neither its own access nor a refusal');
}

/** Options of {@link endAtExpiry}. */
export interface EndAtExpiryOptions {
  /** Seconds since the epoch. Default: the clock of the resource server. */
  readonly now?: () => number;
}

/**
 * Calls `close` once, when the resource server starts to refuse the token of an access: it has expired, `revocations` have
 * revoked it, or its introspection calls it inactive. For long-lived connections such as WebSockets and event streams. The
 * timer does not keep the process alive. Errors that `close` throws, or rejects with, are ignored. Returns a function that
 * cancels the call. Throws `TypeError` for a value that this copy of the package has not granted.
 *
 * @example
 * const cancel = endAtExpiry(access, () => socket.close(1008, 'The token has expired.'));
 * socket.once('close', cancel);
 */
export function endAtExpiry(
  access: Access<unknown>,
  close: () => unknown,
  options: EndAtExpiryOptions = {},
): () => void {
  checkOptionMembers<EndAtExpiryOptions>('endAtExpiry', options, { now: true });
  if (typeof close !== 'function') throw new TypeError('endAtExpiry: close is a function');
  const admitted = findAdmitted(access);
  if (admitted === undefined) {
    throw new TypeError('endAtExpiry: pass the access that this copy of portcullis has granted, and not a copy of it');
  }
  return watchToken(admitted, { end: () => attempt(close), now: options.now ?? admitted.now, until: 'expiry' });
}

/**
 * Follows the token of an open stream that an access admitted. Returns its refusal if it has ended since, otherwise the
 * function that stops this.
 */
export function followAccess(
  access: Access<unknown>,
  options: Omit<TokenWatchOptions, 'now'>,
): (() => void) | Refused | undefined {
  const admitted = findAdmitted(access);
  if (admitted === undefined) return undefined;
  const { now } = admitted;
  return refuseEnded(admitted, { now, until: options.until }) ?? watchToken(admitted, { ...options, now });
}
