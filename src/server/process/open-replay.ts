import { createMemoryReplayStore, type ReplayStore } from '../../core/dpop/replay.ts';
import { createRedisReplayStore, type RedisReplayOptions } from '../../core/dpop/replay-redis.ts';
import { messageOf } from '../../core/shown-text.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import { logConnection } from '../revocation/open-revocations.ts';
import type { Settings } from '../settings/settings.ts';

/** Opens the replay store and registers its metrics. Rejects with `StartFailure` if the client of Redis is not installed. */
export async function openReplay(context: ProcessContext): Promise<{ store: ReplayStore | 'off'; close(): void }> {
  const { log, metrics } = context;
  const { replayStore } = context.settings;
  if (replayStore !== 'off' && replayStore !== 'memory') return openRedis(context);
  const close = (): void => {};
  if (replayStore === 'off') {
    log.write('warn', 'replay_store_off', { effect: 'a DPoP proof can be used again until it is too old' });
    return { store: 'off', close };
  }
  const store = createMemoryReplayStore();
  metrics.gauge('portcullis_replay_store_entries', 'Recorded proofs.', () => store.size);
  return { store, close };
}

export function isReplayUnreachable(replay: ReplayStore | 'off'): boolean {
  return replay !== 'off' && 'connected' in replay && replay.connected === false;
}

/** Readiness check of an unreachable store. */
export const replayUnreachable = { replay: 'Redis is unreachable: DPoP requests get 503' } as const;

async function openRedis({ settings, log, metrics }: ProcessContext) {
  const redis = await createRedisReplayStore(settings.replayStore, {
    ...readRedisOptions(settings),
    onConnection: (state, cause) => logConnection(log, 'replay', state, cause),
  }).catch((cause: unknown) => {
    throw new StartFailure(messageOf(cause), cause);
  });
  const latency = metrics.histogram('portcullis_replay_store_seconds', 'Time of a Redis call for a proof.').series();
  metrics.gauge('portcullis_replay_store_errors_total', 'Redis calls that failed or timed out.', () => redis.errors);
  metrics.gauge('portcullis_replay_store_connected', '1 if Redis is connected, otherwise 0.', () =>
    redis.connected ? 1 : 0,
  );
  const { witness } = redis;
  redis.witness = async (...proof) => {
    const sentAt = performance.now();
    const outcome = await witness(...proof);
    latency.observe((performance.now() - sentAt) / 1000);
    return outcome;
  };
  return { store: redis, close: redis.close };
}

/** Returns the options of the replay store. */
export function readRedisOptions({
  replayTimeout,
  replayNamespace: namespace,
  sentinelPassword: password,
}: Pick<Settings, 'replayTimeout' | 'replayNamespace' | 'sentinelPassword'>): RedisReplayOptions {
  return { timeout: replayTimeout / 1000, namespace, sentinel: { password } };
}
