import { attempt } from '../attempt.ts';
import { AccessError } from '../failures.ts';
import type { Credentials, Scheme } from '../http/credentials.ts';
import { checkOptionMembers } from '../option-members.ts';
import { Refused } from '../refused.ts';
import type { RevocationParts } from '../revocation/revocations.ts';
import type { ValidToken } from '../token/access-token.ts';
import type { Claims } from '../token/claims.ts';
import { type Actor, readActor, readClient, readPermissions } from '../token/grants.ts';
import type { Given } from '../token/token-policy.ts';

/** The access granted to a request, passed to the handler. */
export interface Access<C = Claims> {
  /** Claims of the token, or the output of the policy's schema. */
  readonly claims: C;
  /** The elements of `scope`. */
  readonly scopes: ReadonlySet<string>;
  /** The elements of the claim, or claims, of `permissionsClaim`. Not enumerable, like `token`. */
  readonly permissions: ReadonlySet<string>;
  /** Scheme of the credentials. */
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
export interface AdmittedToken {
  readonly token: ValidToken;
  readonly credentials: Credentials;
  readonly revocations: RevocationParts | undefined;
  /** Present if the token was introspected. */
  readonly again: Recheck | undefined;
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

  /** For `JSON.stringify`: sets as arrays, and never the token. */
  toJSON(): object {
    const { claims, verifiedBy } = this.#admitted.token;
    const client = readClient(claims, verifiedBy.issuer.clientIdClaim);
    const { scopes, permissions } = this;
    return { issuer: claims.iss, subject: claims.sub, client, scopes: [...scopes], permissions: [...permissions] };
  }

  /** For `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return this.toJSON();
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

/** Follows the token of an open stream: its refusal if it has ended since, otherwise the function that stops this. */
export function followAccess(
  access: Access<unknown>,
  options: Omit<TokenWatchOptions, 'now'>,
): (() => void) | Refused | undefined {
  const admitted = findAdmitted(access);
  if (admitted === undefined) return undefined;
  const watch = { ...options, now: admitted.now };
  return refuseEnded(admitted, watch) ?? watchToken(admitted, watch);
}

/** Cause for which an open stream ends with its token. */
export type TokenEnd = 'expired' | 'revoked';

/** Introspects a token again. */
export interface Recheck {
  /** Seconds between two checks. */
  readonly seconds: number;
  /** Resolves with the token, or with its refusal if it is no longer valid. */
  readonly verify: () => Promise<ValidToken | { readonly reason: string } | undefined>;
}

/** Seconds of a clock that never steps back: a wall clock that was set back would delay a check, and prolong what is cached. */
export const steady = (): number => performance.now() / 1000;

const never: Recheck = { seconds: Number.POSITIVE_INFINITY, verify: async () => undefined };

interface TokenWatchOptions {
  /** Called once, never before the watch has returned. */
  readonly end: (cause: TokenEnd) => void;
  /** Seconds since the epoch. */
  readonly now: () => number;
  /** `revocation`: the expiry ends nothing. */
  readonly until: 'expiry' | 'revocation';
}

/** Maximum seconds until the clock is read again: it may have been set, or the host has slept. */
const maxWait = 3600;

/** Returns when a server starts to refuse a token, in seconds since the epoch. */
function endOf({ claims, verifiedBy: { issuer } }: ValidToken): number {
  return claims.exp + issuer.expTolerance;
}

/** Refuses a token that has expired since it was verified. */
export function refuseExpired(token: ValidToken, now: number): Refused | undefined {
  return now < endOf(token) ? undefined : new Refused('expired');
}

/** Refuses a token that has expired or was revoked since it was admitted. */
export function refuseEnded(
  { token, revocations }: Pick<AdmittedToken, 'token' | 'revocations'>,
  { now, until }: Pick<TokenWatchOptions, 'now' | 'until'>,
): Refused | undefined {
  const { claims, verifiedBy } = token;
  const expired = until === 'expiry' ? refuseExpired(token, now()) : undefined;
  const refused = expired ?? revocations?.refuseRevoked(claims);
  return refused?.attest({ claims, kid: verifiedBy.kid });
}

/** Calls `end` when the token of an open stream ends. Returns the function that stops the watch. */
function watchToken(watched: AdmittedToken, { end, now, until }: TokenWatchOptions): () => void {
  const { revocations, again = never } = watched;
  let { token } = watched;
  let nextCheck = steady() + again.seconds;
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;

  const refuse = (): Refused | undefined => refuseEnded({ token, revocations }, { now, until });
  const finish = ({ reason }: { readonly reason: string }): void => {
    stop();
    end(reason === 'expired' ? 'expired' : 'revoked');
  };
  const wait = (): void => {
    const untilEnd = until === 'expiry' ? endOf(token) - now() : Number.POSITIVE_INFINITY;
    const left = refuse() === undefined ? Math.max(Math.min(untilEnd, nextCheck - steady()), 0) : 0;
    clearTimeout(timer);
    if (left === Number.POSITIVE_INFINITY) return;
    // Node keeps one list for each duration, so whole seconds let many streams share few.
    const seconds = left > 1 ? Math.min(Math.floor(left), maxWait) : left;
    timer = setTimeout(tick, Math.ceil(seconds * 1000));
    timer.unref?.(); // a number in runtimes whose timers hold nothing open
  };
  const tick = (): void => {
    const refused = refuse();
    if (refused !== undefined) finish(refused);
    else if (steady() >= nextCheck) void check();
    else wait();
  };
  const check = async (): Promise<void> => {
    const next = await again.verify().catch(() => undefined);
    if (isOver) return;
    nextCheck = steady() + again.seconds;
    // An endpoint that does not respond has not called the token inactive.
    if (next !== undefined && 'reason' in next && next.reason !== 'introspection_unavailable') return finish(next);
    if (next !== undefined && !('reason' in next)) token = next;
    wait();
  };
  const unfollow = revocations?.follow(token.claims, () => {
    const refused = refuse();
    if (refused !== undefined) finish(refused);
    // Without iat, only a new response of the issuer can tell.
    else if (revocations.doubtOf(token.claims) !== undefined) void check();
  });
  const stop = (): void => {
    isOver = true;
    clearTimeout(timer);
    unfollow?.();
  };
  wait();
  return stop;
}
