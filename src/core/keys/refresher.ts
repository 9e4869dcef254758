import { type ProviderError, toProviderError } from '../outbound/provider-error.ts';

interface FailedAttempt {
  readonly error: ProviderError;
  readonly attempt: number;
  readonly at: number;
  /** Earliest time of the next attempt by backoff, in seconds. */
  readonly retryAt: number;
}

export interface RefresherState {
  /** Time at which the last attempt began, in seconds; minus infinity before the first. */
  readonly lastAttemptAt: number;
  /** `undefined` before the first attempt, and when the last one succeeded. */
  readonly failure: FailedAttempt | undefined;
  /** Time of the next attempt by the timer, in seconds; infinity if it makes none. */
  readonly dueAt: number;
}

export interface RefresherOptions {
  /** One attempt; resolves with the seconds until the next one is due: infinity for never. */
  readonly attempt: () => Promise<number>;
  /** Called for each failure, with the seconds until the backoff allows the next attempt. */
  readonly onFailure: (failure: FailedAttempt, retryInSeconds: number) => void;
  /**
   * Way in which a request awaits the attempt of another request. `promise`: its end. `state`: its end or its timeout, on a
   * separate timer; on Workers the attempt of a request that has ended may never end.
   */
  readonly waiting: 'promise' | 'state';
  /** Seconds that one attempt takes at most. */
  readonly attemptSeconds: number;
  readonly timer: 'on' | 'off';
  readonly now: () => number;
  readonly random: () => number;
  readonly state?: RefresherState | undefined;
}

const maxBackoffSeconds = 30;
const stateMilliseconds = 20;
const initial: RefresherState = { lastAttemptAt: -Infinity, failure: undefined, dueAt: Infinity };

/** Creates the runner of attempts, one at a time. It rests until the first request, or until the attempt that is due by the state. */
export function createRefresher(options: RefresherOptions) {
  const { attempt, onFailure, waiting, attemptSeconds, timer, now, random, state = initial } = options;
  const attempts = { ok: 0, failed: 0 };
  let { lastAttemptAt, failure, dueAt } = state;
  let inFlight: Promise<void> | undefined;
  let next: NodeJS.Timeout | undefined;
  let stopped = false;
  let latest = 0;

  async function run(): Promise<void> {
    const own = ++latest;
    lastAttemptAt = now();
    try {
      const dueInSeconds = await attempt();
      attempts.ok++;
      failure = undefined;
      schedule(dueInSeconds);
    } catch (error) {
      if (!stopped) fail(toProviderError(error));
    } finally {
      // A later attempt may have replaced one that had its time.
      if (own === latest) inFlight = undefined;
    }
  }

  async function watch(isAllowed: () => boolean): Promise<void> {
    while (inFlight !== undefined && !stopped) {
      if (now() >= lastAttemptAt + attemptSeconds) {
        if (isAllowed()) await start();
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, stateMilliseconds));
    }
  }

  function fail(error: ProviderError): void {
    const count = (failure?.attempt ?? 0) + 1;
    // Doubles from 2 s; half of it is left to chance, so that instances that failed together do not return together.
    const retryInSeconds = Math.min(maxBackoffSeconds, 2 ** count) * (0.5 + random() / 2);
    const at = now();
    attempts.failed++;
    failure = { error, attempt: count, at, retryAt: at + retryInSeconds };
    schedule(retryInSeconds);
    onFailure(failure, retryInSeconds);
  }

  function schedule(seconds: number): void {
    clearTimeout(next);
    if (stopped || timer === 'off' || seconds === Number.POSITIVE_INFINITY) return;
    dueAt = now() + seconds;
    next = setTimeout(start, seconds * 1000);
    next.unref?.(); // a number in runtimes whose timers hold nothing open
  }

  function start(): Promise<void> {
    clearTimeout(next); // due at the same moment where a request was first: one attempt at a time
    inFlight = run();
    return inFlight;
  }

  schedule(Math.max(0, dueAt - now()));
  return {
    state: (): RefresherState => ({ lastAttemptAt, failure, dueAt }),
    attempts,
    /** Waits for the attempt in flight, or makes one if `isAllowed` then permits it. Never rejects. */
    request(isAllowed: () => boolean): Promise<void> | undefined {
      if (inFlight !== undefined && waiting === 'state') return watch(isAllowed);
      if (inFlight !== undefined || stopped || !isAllowed()) return inFlight;
      return start();
    },
    stop(): void {
      stopped = true;
      clearTimeout(next);
    },
  };
}
