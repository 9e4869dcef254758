import { attempt } from '../attempt.ts';
import { AccessError } from '../failures.ts';
import type { Credentials, Scheme } from '../http/credentials.ts';
import { checkOptionMembers } from '../option-members.ts';
import type { ValidToken } from '../token/access-token.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { type Actor, readActor, readPermissions } from '../token/grants.ts';
import type { Given } from '../token/token-policy.ts';

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

/** A valid token, and the credentials that contained it. */
interface AdmittedToken {
  readonly token: ValidToken;
  readonly credentials: Credentials;
}

/** Access that this copy of the package has granted: no other value has the private field. */
class Admission implements Access<unknown> {
  readonly claims: unknown;
  readonly scopes: ReadonlySet<string>;
  readonly scheme: Scheme;
  /** Only with a nonce for the client. */
  declare readonly dpopNonce?: string;
  // A private field costs less than a property that is not enumerable.
  readonly #token: string;
  readonly #valid: ValidToken;

  constructor({ token, credentials }: AdmittedToken, given: Given | undefined, nonce: string | undefined) {
    this.#valid = token;
    this.claims = given === undefined ? token.claims : given.claims;
    this.scopes = token.scopes;
    this.scheme = credentials.scheme;
    this.#token = credentials.token;
    if (nonce !== undefined) this.dpopNonce = nonce;
  }

  /** Returns the token of a value that is access; `undefined` for every other value. */
  static tokenOf(value: object): ValidToken | undefined {
    return #valid in value ? value.#valid : undefined;
  }

  get token(): string {
    return this.#token;
  }

  get permissions(): ReadonlySet<string> {
    const { claims, verifiedBy } = this.#valid;
    return readPermissions(claims, verifiedBy.issuer.permissionsClaim);
  }

  get actor(): Actor | undefined {
    return readActor(this.#valid.claims);
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
  return typeof value === 'object' && value !== null && Admission.tokenOf(value) !== undefined;
}

/**
 * Returns when the token of an access expires, in seconds since the epoch: the server refuses it afterwards. `undefined` for
 * every other value. Not read from `access.claims`, because a schema may have replaced them.
 */
export function expiryOf(value: unknown): number | undefined {
  const token = isAccess(value) ? Admission.tokenOf(value) : undefined;
  return token && token.claims.exp + token.verifiedBy.issuer.expTolerance;
}

/** Returns the claims of the token of an access, even if a schema has replaced `access.claims`. */
export function verifiedClaimsOf(access: Access<unknown>): RegisteredClaims | undefined {
  return Admission.tokenOf(access)?.claims;
}

/** Returns the refusal of a result that is not access. Any other value comes from a `judge` that was replaced: a defect. */
export function refusalOf(judged: unknown): AccessError | TypeError {
  return judged instanceof AccessError ? judged : new TypeError('judge returned neither its own access nor a refusal');
}

/** Options of {@link endAtExpiry}. */
export interface EndAtExpiryOptions {
  /** Seconds since the epoch: the clock of the resource server, if it has its own. Default: the clock of this host. */
  readonly now?: () => number;
}

/**
 * Longest wait until the clock is read again, in seconds: it may have been set, or the host has slept. A timer of 2^31 ms or
 * more would fire immediately.
 */
const maxWait = 3600;

/**
 * Calls `close` once, when the token of an access expires and the resource server starts to refuse it. For long-lived
 * connections such as WebSockets and event streams. The timer does not keep the process alive. Errors that `close` throws, or
 * rejects with, are ignored. Returns a function that cancels the call. Throws `TypeError` for a value that this copy of the
 * package has not granted.
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
  const { now = () => Date.now() / 1000 } = options;
  const expiry = expiryOf(access);
  if (expiry === undefined) {
    throw new TypeError('endAtExpiry: pass the access that this copy of portcullis has granted, and not a copy of it');
  }
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    const seconds = Math.min(Math.max(expiry - now(), 0), maxWait);
    timer = setTimeout(() => (now() < expiry ? wait() : attempt(close)), Math.ceil(seconds * 1000));
    timer.unref?.(); // a number in runtimes whose timers hold nothing open
  };
  wait();
  return () => clearTimeout(timer);
}
