import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  createMemoryReplayStore,
  isAfterStart,
  type MemoryReplayOptions,
  type MemoryReplayStore,
  openHorizon,
  type ReplayStore,
  type Witnessed,
} from '../../dpop/replay.ts';
import { createRedisReplayStore, type RedisReplayOptions } from '../../dpop/replay-redis.ts';
import { Refused } from '../../refused.ts';
import { codeOf, messageOf } from '../../shown-text.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import type { Metrics } from '../observation/metrics.ts';
import { type ReplayHealth, watchReplay } from '../observation/replay-health.ts';
import type { Settings } from '../settings/settings.ts';
import type { PrimaryChannel, PrimaryFunctions, SharedReplay, WitnessedProof } from './channel.ts';

/** Milliseconds for the primary process, which may still start. */
const shareTimeout = 30_000;
/** Milliseconds, as for a remote store. */
const witnessTimeout = 250;

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

function openMemory(metrics: Metrics, options?: MemoryReplayOptions): MemoryReplayStore {
  const store = createMemoryReplayStore(options);
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
    help: '1 if Redis recorded the proofs of the last 30 s for every worker, otherwise 0.',
    aggregate: 'min',
    read: () => (wasUsable() ? 1 : 0),
  });
  return { store, close: store.close };
}

/** Opens the replay memory that the workers of this process share. Returns its functions for them. */
export function openSharedReplay(metrics: Metrics): Pick<PrimaryFunctions, 'shareReplay' | 'witness'> {
  // The workers check the horizon, because they know the nonces.
  const store = openMemory(metrics, { since: 0 });
  const shared = { ...openHorizon(Date.now() / 1000), nonceSecret: randomBytes(32).toString('base64url') };
  return {
    shareReplay: () => shared,
    witness: (proofs) =>
      proofs.map(({ jkt, jti, until }) => {
        const first = store.witness(jkt, jti, until);
        return typeof first === 'boolean' ? first : first.reason;
      }),
  };
}

/** Requests the facts of the shared replay memory from the primary process. */
export async function requestSharedReplay(channel: PrimaryChannel): Promise<SharedReplay> {
  const shared = await channel.request('shareReplay', shareTimeout);
  if (shared === undefined) throw new Error('The primary process does not respond');
  return shared;
}

/**
 * Creates the store of a worker, with the replay memory of the primary process. The proofs of one event-loop iteration are
 * sent in one message: a message costs as much as half a signature check.
 */
export function createPrimaryReplayStore(channel: PrimaryChannel, shared: SharedReplay): ReplayStore {
  let batch: { readonly proof: WitnessedProof; readonly resolve: (witnessed: Witnessed) => void }[] = [];
  const send = async (): Promise<void> => {
    const sent = batch;
    batch = [];
    const proofs = sent.map(({ proof }) => proof);
    const outcomes = await channel.request('witness', witnessTimeout, proofs);
    for (const [index, { resolve }] of sent.entries()) {
      const outcome = outcomes?.[index] ?? 'replay_store_unavailable';
      resolve(typeof outcome === 'boolean' ? outcome : new Refused(outcome));
    }
  };

  return {
    generation: shared.generation,
    witness(jkt, jti, until, readNonce) {
      if (!isAfterStart(shared, Date.now() / 1000, { until, readNonce })) return new Refused('proof_before_start');
      if (batch.length === 0) setImmediate(send);
      return new Promise((resolve) => void batch.push({ proof: { jkt, jti, until }, resolve }));
    },
  };
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
