import { readFile } from 'node:fs/promises';
import { createMemoryReplayStore, type MemoryReplayStore, type ReplayStore } from '../../core/dpop/replay.ts';
import { createRedisReplayStore, type RedisReplayOptions } from '../../core/dpop/replay-redis.ts';
import { codeOf, messageOf } from '../../core/shown-text.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import type { Metrics } from '../observation/metrics.ts';
import { type ReplayHealth, watchReplay } from '../observation/replay-health.ts';
import type { Settings } from '../settings/settings.ts';

export interface OpenedReplay {
  readonly store: ReplayStore | 'off';
  close(): void;
}

/** Opens the replay store and registers its metrics. Rejects with `StartFailure` if the client of Redis is not installed. */
export async function openReplay(context: ProcessContext): Promise<OpenedReplay> {
  const { log, metrics } = context;
  const { replayStore } = context.settings;
  if (replayStore !== 'off' && replayStore !== 'memory') return openRedis(context);
  const store = replayStore === 'off' ? replayStore : openMemory(metrics);
  if (store === 'off') {
    log.write('warn', 'replay_store_off', { effect: 'a DPoP proof can be used again until it is too old' });
  }
  return { store, close: () => {} };
}

export function isReplayUnreachable(replay: ReplayStore | 'off'): boolean {
  return replay !== 'off' && 'connected' in replay && replay.connected === false;
}

/** Readiness check of an unreachable store. */
export const replayUnreachable = { replay: 'Redis is unreachable: DPoP requests get 503' } as const;

function openMemory(metrics: Metrics): MemoryReplayStore {
  const store = createMemoryReplayStore();
  metrics.gauge({ name: 'portcullis_replay_store_entries', help: 'Recorded proofs.', read: () => store.size });
  return store;
}

async function openRedis({ settings, log, metrics }: ProcessContext): Promise<OpenedReplay> {
  let health: ReplayHealth | undefined;
  const redis = await createRedisReplayStore(settings.replayStore, {
    ...(await readRedisOptions(settings)),
    onConnection: (_, cause) => health?.noteConnection(cause),
  }).catch((cause: unknown) => {
    throw new StartFailure(messageOf(cause), cause);
  });
  const latency = metrics.histogram('portcullis_replay_store_seconds', 'Time of a Redis call for a proof.').series();
  health = watchReplay(redis, {
    onDuration: latency.observe,
    onChange: (state, cause) =>
      log.write(state === 'up' ? 'info' : 'warn', `replay_store_${state}`, {
        message: cause instanceof Error ? cause.message : undefined,
      }),
  });
  const { store, wasUsable } = health;
  metrics.gauge({
    name: 'portcullis_replay_store_errors_total',
    help: 'Redis calls that failed or timed out.',
    type: 'counter',
    read: () => store.errors,
  });
  metrics.gauge({
    name: 'portcullis_replay_store_connected',
    help: '1 if Redis recorded the proofs of the last 30 s, otherwise 0.',
    read: () => (wasUsable() ? 1 : 0),
  });
  return { store, close: store.close };
}

export type RedisSettings = Pick<
  Settings,
  | ('replayStore' | 'replayTimeout' | 'replayNamespace' | 'replayCa' | 'replayCert' | 'replayKey')
  | ('sentinelUsername' | 'sentinelPassword')
>;

/** Reads the options of the replay store, with the PEM files. Rejects with `StartFailure` if one cannot be read. */
export async function readRedisOptions(settings: RedisSettings): Promise<RedisReplayOptions> {
  const { replayCa, replayCert, replayKey, sentinelUsername: username, sentinelPassword: password } = settings;
  if ((replayCert === '') !== (replayKey === '')) {
    throw new StartFailure('REPLAY_CERT and REPLAY_KEY: set both, or none');
  }
  const tls = {
    ...(replayCa !== '' && { ca: await readPem('REPLAY_CA', replayCa) }),
    ...(replayCert !== '' && { cert: await readPem('REPLAY_CERT', replayCert) }),
    ...(replayKey !== '' && { key: await readPem('REPLAY_KEY', replayKey) }),
  };
  return {
    timeout: settings.replayTimeout / 1000,
    namespace: settings.replayNamespace,
    ...(Object.keys(tls).length > 0 && { tls }),
    ...(password !== '' && { sentinel: { ...(username !== '' && { username }), password } }),
  };
}

async function readPem(setting: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const problem = `${setting} cannot be read (${codeOf(cause)}). Set a readable PEM file`;
    throw new StartFailure(problem, cause);
  }
}
