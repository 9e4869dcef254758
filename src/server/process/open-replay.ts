import { createMemoryReplayStore, type MemoryReplayStore, type ReplayStore } from '../../dpop/replay.ts';
import { createRedisReplayStore } from '../../dpop/replay-redis.ts';
import { exitCodes, StartFailure } from '../lifecycle/exit.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';
import { openPrimaryReplay, type PrimaryReplay } from './replay-ipc.ts';

/** What the replay store is opened with. */
export interface OpenReplayOptions {
  readonly settings: Pick<Settings, 'replayStore' | 'replayTimeout' | 'replayNamespace'>;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The store that `REPLAY_STORE` names. */
export interface OpenedReplay {
  readonly store: ReplayStore | 'off';
  close(): Promise<void>;
}

/** Opens the replay store and registers its metrics. Rejects with `StartFailure` where Redis' client is not installed. */
export async function openReplay({ settings, log, metrics }: OpenReplayOptions): Promise<OpenedReplay> {
  if (settings.replayStore === 'off') {
    log.write('warn', 'replay_store_off', { effect: 'a DPoP proof can be used again until it is too old' });
    return { store: 'off', close: async () => {} };
  }
  if (settings.replayStore === 'memory') {
    const store = createMemoryReplayStore();
    registerMemory(store, metrics);
    return { store, close: async () => {} };
  }
  return openRedis({ settings, log, metrics });
}

/** Whether used proofs are remembered by a store that cannot be asked now. */
export function isReplayAway(replay: ReplayStore | 'off'): boolean {
  return replay !== 'off' && 'connected' in replay && replay.connected === false;
}

/** What readiness says of a store that cannot be asked. */
export const replayAway = { replay: 'Redis cannot be asked: DPoP is answered with 503' } as const;

/** Opens the replay memory that the workers of this process share, and registers its metrics. */
export function openSharedReplay(metrics: Metrics): PrimaryReplay {
  const replay = openPrimaryReplay();
  registerMemory(replay.store, metrics);
  return replay;
}

function registerMemory(store: MemoryReplayStore, metrics: Metrics): void {
  metrics.gauge({
    name: 'portcullis_replay_store_entries',
    help: 'Used proofs that are remembered.',
    aggregate: 'sum',
    read: () => store.size,
  });
}

async function openRedis({ settings, log, metrics }: OpenReplayOptions): Promise<OpenedReplay> {
  const store = await createRedisReplayStore(settings.replayStore, {
    timeout: settings.replayTimeout / 1000,
    namespace: settings.replayNamespace,
    onConnection: (state, cause) => {
      const message = cause instanceof Error ? { message: cause.message } : {};
      log.write(state === 'up' ? 'info' : 'warn', `replay_store_${state}`, message);
    },
  }).catch((cause: unknown) => {
    throw new StartFailure(cause instanceof Error ? cause.message : 'Redis cannot be used', exitCodes.config, {
      cause,
    });
  });
  metrics.gauge({
    name: 'portcullis_replay_store_errors_total',
    help: 'Times that Redis could not be asked, or did not answer in time.',
    type: 'counter',
    aggregate: 'sum',
    read: () => store.errors,
  });
  metrics.gauge({
    name: 'portcullis_replay_store_connected',
    help: 'Whether Redis can be asked: 1 or 0.',
    aggregate: 'max',
    read: () => (store.connected ? 1 : 0),
  });
  return { store, close: async () => store.close() };
}
