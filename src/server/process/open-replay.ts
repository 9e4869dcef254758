import { readFile } from 'node:fs/promises';
import { createMemoryReplayStore, type MemoryReplayStore, type ReplayStore } from '../../dpop/replay.ts';
import { createRedisReplayStore, type RedisReplayOptions } from '../../dpop/replay-redis.ts';
import { exitCodes, StartFailure } from '../lifecycle/exit.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';
import { type ReplayHealth, watchReplay } from '../observation/replay-health.ts';
import type { Settings } from '../settings/settings.ts';
import { openPrimaryReplay, type PrimaryReplay } from './replay-ipc.ts';

export interface OpenReplayOptions {
  readonly settings: RedisSettings;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface OpenedReplay {
  readonly store: ReplayStore | 'off';
  close(): Promise<void>;
}

/** Opens the replay store and registers its metrics. Rejects with `StartFailure` if the client of Redis is not installed. */
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

export function isReplayUnreachable(replay: ReplayStore | 'off'): boolean {
  return replay !== 'off' && 'connected' in replay && replay.connected === false;
}

/** Readiness check of an unreachable store. */
export const replayUnreachable = { replay: 'Redis is unreachable: DPoP requests get 503' } as const;

/** Opens the replay memory that the workers of this process share, and registers its metrics. */
export function openSharedReplay(metrics: Metrics): PrimaryReplay {
  const replay = openPrimaryReplay();
  registerMemory(replay.store, metrics);
  return replay;
}

function registerMemory(store: MemoryReplayStore, metrics: Metrics): void {
  metrics.gauge({ name: 'portcullis_replay_store_entries', help: 'Recorded proofs.', read: () => store.size });
}

async function openRedis({ settings, log, metrics }: OpenReplayOptions): Promise<OpenedReplay> {
  let health: ReplayHealth | undefined;
  const redis = await createRedisReplayStore(settings.replayStore, {
    ...(await readRedisOptions(settings)),
    onConnection: (_, cause) => health?.noteConnection(cause),
  }).catch((cause: unknown) => {
    throw new StartFailure(cause instanceof Error ? cause.message : 'Redis cannot be used', exitCodes.config, {
      cause,
    });
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
    help: '1 if Redis recorded the proofs of the last 30 s for every worker, otherwise 0.',
    aggregate: 'min',
    read: () => (wasUsable() ? 1 : 0),
  });
  return { store, close: async () => store.close() };
}

export type RedisSettings = Pick<Settings, (typeof redisSettings)[number]>;
const redisSettings = [
  ...(['replayStore', 'replayTimeout', 'replayNamespace', 'replayCa', 'replayCert', 'replayKey'] as const),
  ...(['sentinelUsername', 'sentinelPassword'] as const),
] as const;

/** Reads the options of the replay store, with the PEM files. Rejects with `StartFailure` if one cannot be read. */
export async function readRedisOptions(settings: RedisSettings): Promise<RedisReplayOptions> {
  const { replayCa, replayCert, replayKey, sentinelUsername: username, sentinelPassword: password } = settings;
  if ((replayCert === '') !== (replayKey === '')) {
    throw new StartFailure('REPLAY_CERT and REPLAY_KEY: set both, or none', exitCodes.config);
  }
  const read = async (name: 'ca' | 'cert' | 'key', setting: string, file: string) =>
    file === '' ? {} : { [name]: await readPem(setting, file) };
  const tls = {
    ...(await read('ca', 'REPLAY_CA', replayCa)),
    ...(await read('cert', 'REPLAY_CERT', replayCert)),
    ...(await read('key', 'REPLAY_KEY', replayKey)),
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
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    throw new StartFailure(`${setting} cannot be read (${code}). Set a readable PEM file`, exitCodes.config, { cause });
  }
}
