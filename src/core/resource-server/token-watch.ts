import { Refused } from '../refused.ts';
import type { RevocationParts } from '../revocation/revocations.ts';
import type { ValidToken } from '../token/access-token.ts';

/** Cause for which an open stream ends with its token. */
export type TokenEnd = 'expired' | 'revoked';

/** A token that was admitted, and what may end it later. */
export interface WatchedToken {
  readonly token: ValidToken;
  readonly revocations: RevocationParts | undefined;
  /** Present if the token was introspected. */
  readonly again: Recheck | undefined;
}

/** Introspects a token again. */
export interface Recheck {
  /** Seconds between two checks. */
  readonly seconds: number;
  /** Resolves with the token, or with its refusal if it is no longer valid. */
  readonly verify: () => Promise<ValidToken | { readonly reason: string } | undefined>;
}

const never: Recheck = { seconds: Number.POSITIVE_INFINITY, verify: async () => undefined };

export interface TokenWatchOptions {
  /** Called once, never before the watch has returned. */
  readonly end: (cause: TokenEnd) => void;
  /** Seconds since the epoch. */
  readonly now: () => number;
  /** `revocation`: the expiry ends nothing. */
  readonly until: 'expiry' | 'revocation';
}

/**
 * Longest wait until the clock is read again, in seconds: it may have been set, or the host has slept. A timer of 2^31 ms or
 * more would fire immediately.
 */
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
  { token, revocations }: WatchedToken,
  { now, until }: Pick<TokenWatchOptions, 'now' | 'until'>,
): Refused | undefined {
  const { claims, verifiedBy } = token;
  const expired = until === 'expiry' ? refuseExpired(token, now()) : undefined;
  const refused = expired ?? revocations?.refuseRevoked(claims);
  return refused?.attest({ claims, kid: verifiedBy.kid });
}

/** Calls `end` when the token of an open stream ends. Returns the function that stops the watch. */
export function watchToken(watched: WatchedToken, { end, now, until }: TokenWatchOptions): () => void {
  const { revocations, again = never } = watched;
  let { token } = watched;
  let nextCheck = now() + again.seconds;
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;

  const refuse = (): Refused | undefined => refuseEnded({ ...watched, token }, { now, until });
  const finish = ({ reason }: { readonly reason: string }): void => {
    stop();
    end(reason === 'expired' ? 'expired' : 'revoked');
  };
  const wait = (): void => {
    const due = refuse() === undefined ? Math.min(until === 'expiry' ? endOf(token) : nextCheck, nextCheck) : now();
    clearTimeout(timer);
    if (due === Number.POSITIVE_INFINITY) return;
    const left = Math.max(due - now(), 0);
    // Node keeps one list for each duration, so whole seconds let many streams share few.
    const seconds = left > 1 ? Math.min(Math.floor(left), maxWait) : left;
    timer = setTimeout(tick, Math.ceil(seconds * 1000));
    timer.unref?.(); // a number in runtimes whose timers hold nothing open
  };
  const tick = (): void => {
    const refused = refuse();
    if (refused !== undefined) finish(refused);
    else if (now() >= nextCheck) void check();
    else wait();
  };
  const check = async (): Promise<void> => {
    const next = await again.verify().catch(() => undefined);
    if (isOver) return;
    nextCheck = now() + again.seconds;
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
