import { randomUUID } from 'node:crypto';
import type { RedisReplayStore } from '../../core/dpop/replay-redis.ts';

export interface ReplayHealth {
  /** The store; it also counts failures. Its `connected` is false while DPoP requests fail. */
  readonly store: RedisReplayStore;
  /** False if the store failed at any time of the last 30 s. */
  wasUsable(): boolean;
  /** Notes a change of the connection. `cause`: the error that ended it. */
  noteConnection(cause: unknown): void;
}

export interface WatchReplayOptions {
  /** Called when DPoP requests begin to fail, and when they succeed again. */
  readonly onChange: (state: 'up' | 'down', cause: unknown) => void;
  /** Called with the seconds of each Redis call for a proof; a call that times out has its timeout. */
  readonly onDuration?: (seconds: number) => void;
  /** Monotonic clock, in seconds. */
  readonly now?: () => number;
}

/** Seconds of the observed period. */
const period = 30;
/** Interval of made-up proofs while the store fails, in milliseconds. Without requests, nothing else would show its recovery. */
const probeInterval = 2000;
/** Share of failed proofs above which the store counts as failing. */
const toleratedShare = 0.1;

/**
 * Watches a replay store in Redis. Redis may be connected and refuse every proof: if it is out of memory, read-only or
 * slower than the timeout.
 */
export function watchReplay(redis: RedisReplayStore, options: WatchReplayOptions): ReplayHealth {
  const { onChange, onDuration, now = () => performance.now() / 1000 } = options;
  const outcomes = createOutcomes();
  let isFailing = false;
  let unusableAt = Number.NEGATIVE_INFINITY;
  let reported: 'up' | 'down' | undefined;

  const report = (cause?: unknown): void => {
    const state = redis.connected && !isFailing ? 'up' : 'down';
    // A store that was never connected is starting.
    if (state === 'down' && reported !== undefined) unusableAt = now();
    if (state === reported) return;
    reported = state;
    onChange(state, cause);
  };
  const record = (outcome: Awaited<ReturnType<RedisReplayStore['witness']>>): void => {
    const failure = typeof outcome === 'object' && outcome.reason === 'replay_store_unavailable' ? outcome : undefined;
    outcomes.add(now(), failure === undefined);
    isFailing = failure !== undefined && outcomes.failedShare(now()) > toleratedShare;
    report(failure?.cause);
  };
  const probe = async (): Promise<void> => {
    if (isFailing && redis.connected) {
      record(await redis.witness('portcullis-probe', randomUUID(), Date.now() / 1000 + 1));
    }
  };
  const timer = setInterval(() => void probe(), probeInterval).unref();

  return {
    store: {
      sharedBy: redis.sharedBy,
      get generation() {
        return redis.generation ?? 0;
      },
      async witness(...proof) {
        const sentAt = now();
        const outcome = await redis.witness(...proof);
        onDuration?.(now() - sentAt);
        record(outcome);
        return outcome;
      },
      get connected() {
        return redis.connected && !isFailing;
      },
      get errors() {
        return redis.errors;
      },
      close() {
        clearInterval(timer);
        redis.close();
      },
    },
    wasUsable: () => redis.connected && !isFailing && now() - unusableAt >= period,
    noteConnection(cause) {
      report(cause);
      void probe();
    },
  };
}

/** Counts outcomes of the last period, in three parts. */
function createOutcomes() {
  const part = period / 3;
  let parts: { readonly since: number; all: number; failed: number }[] = [];
  return {
    add(at: number, isOk: boolean): void {
      let last = parts.at(-1);
      if (last === undefined || at - last.since >= part) {
        last = { since: at, all: 0, failed: 0 };
        parts = [...parts.slice(-2), last];
      }
      last.all++;
      if (!isOk) last.failed++;
    },
    failedShare(at: number): number {
      const recent = parts.filter(({ since }) => at - since < period);
      const count = (name: 'all' | 'failed'): number => recent.reduce((sum, each) => sum + each[name], 0);
      return count('failed') / Math.max(1, count('all'));
    },
  };
}
