import { limitTime } from '../../core/attempt.ts';
import { createNonces } from '../../core/dpop/nonce.ts';
import { createRedisRevocationStore } from '../../core/revocation/redis-store.ts';
import type { Revocations } from '../../core/revocation/revocations.ts';
import { explainRevocations, openWith } from '../revocation/open-revocations.ts';
import type { Settings } from '../settings/settings.ts';
import type { ServerMeans } from './open-resource-server.ts';

/** Seconds until Redis counts as unreachable. */
const timeout = 5;

/** Loads the cutoffs in Redis, for a command. Rejects if Redis does not send them in time. */
export async function loadRevocations(settings: Settings): Promise<Revocations> {
  const { revocationStore, sentinelPassword: password } = settings;
  const store = await createRedisRevocationStore(revocationStore, { sentinel: { password } });
  const revocations = openWith(settings, store);
  try {
    await limitTime(revocations.ready(), timeout, () => Promise.reject(new Error('late')));
    return revocations;
  } catch (error) {
    revocations.close();
    throw error;
  }
}

/**
 * Means outside the process of a service, for an explanation: nonces under the same secret, and the cutoffs of Redis. Cutoffs
 * in the memory of a service are unknown, and with `offline` all are.
 */
export async function openOutside(settings: Settings, network: 'online' | 'offline'): Promise<ServerMeans> {
  const nonces = settings.dpopNonce === 'required' ? createNonces({ secret: settings.dpopNonceSecret }) : undefined;
  const isRead = settings.revocationStore !== 'memory' && network === 'online';
  const revocations = isRead ? await loadRevocations(settings).catch(() => undefined) : undefined;
  return {
    ...(revocations === undefined ? explainRevocations(settings) : { revocations }),
    ...(nonces !== undefined && { dpop: { nonces } }),
  };
}
