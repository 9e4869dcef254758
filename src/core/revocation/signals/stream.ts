import { setTimeout as sleep } from 'node:timers/promises';
import { algorithms } from '../../jose/jws.ts';
import { createKeySet, type ManagedKeySet } from '../../keys/key-set.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';
import type { Outbound, OutboundOptions } from '../../outbound/outbound.ts';
import { ProviderError } from '../../outbound/provider-error.ts';
import { Refused } from '../../refused.ts';
import { timeOfMark } from '../record.ts';
import type { RevocationParts } from '../revocations.ts';
import { eventErrors, readSecurityEvent, type SecurityEventError } from './security-event.ts';
import type { Stream } from './stream-options.ts';

/** Result of one security event token. `not_ready`: the keys of the transmitter are not known yet. */
export type SignalOutcome =
  | 'cutoff'
  | 'verification'
  | 'event'
  | 'subject_unsupported'
  | 'subject_foreign'
  | 'not_ready'
  | SecurityEventError;

/** A change of a stream, for logs and metrics. */
export type StreamEvent =
  | {
      /** A security event token arrived. */
      readonly type: 'received';
      /** Name of the stream. */
      readonly stream: string;
      /** Effect of the token, or its defect. */
      readonly outcome: SignalOutcome;
    }
  | {
      /** Metadata and keys of the transmitter are there. */
      readonly type: 'opened';
      /** Name of the stream. */
      readonly stream: string;
    }
  | {
      /** Metadata or keys of the transmitter could not be read. It is tried again; the next failures are not reported. */
      readonly type: 'failed';
      /** Name of the stream. */
      readonly stream: string;
      /** The error. */
      readonly cause: unknown;
    };

export interface StreamParts {
  readonly revocations: Pick<RevocationParts, 'set' | 'noteVerified' | 'markOf'>;
  readonly outbound: Outbound;
  readonly keyOptions: OutboundOptions;
  readonly emit: (event: StreamEvent) => void;
  /** Returns seconds since the epoch. */
  readonly now: () => number;
}

/** Longest time between two attempts to read metadata and keys, in seconds. */
const longestRetry = 60;
const limits = { timeoutSeconds: 5, maxBytes: 256 * 1024 } as const;
const allAlgorithms: ReadonlySet<string> = new Set(algorithms.keys());

/** Opens a stream: reads the transmitter's metadata and keys in the background, until they are there. */
export function openStream(options: Stream, { revocations, outbound, keyOptions, emit, now }: StreamParts) {
  const { name, transmitter, verifyEvery } = options;
  const startedAt = now();
  const closing = new AbortController();
  const { signal } = closing;
  let found: ManagedKeySet | undefined;
  let keys: ManagedKeySet | undefined;

  const receive = async (token: string): Promise<SignalOutcome> => {
    if (keys === undefined) return 'not_ready';
    const issuer = { issuer: transmitter, keys, algorithms: allAlgorithms };
    let event = readSecurityEvent(token, options, issuer);
    if (event instanceof Refused) {
      await keys.refetch();
      event = readSecurityEvent(token, options, issuer);
    }
    if (event instanceof Refused) return event.reason === 'keys_unavailable' ? 'not_ready' : 'invalid_key';
    if (event === 'verification' && verifyEvery !== undefined) await revocations.noteVerified(name, 2 * verifyEvery);
    if (typeof event === 'string') return event;
    await revocations.set([event]);
    return 'cutoff';
  };

  const connect = async (): Promise<void> => {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const jwksUri = await readJwksUri(transmitter, outbound);
        found ??= createKeySet({ ...keyOptions, issuer: transmitter, jwksUri });
        await found.ready();
        keys = found;
        return emit({ type: 'opened', stream: name });
      } catch (cause) {
        if (failures === 0) emit({ type: 'failed', stream: name, cause });
        const seconds = Math.min(longestRetry, 2 ** failures);
        await sleep(seconds * 1000, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
    found?.close();
  };

  // Any instance may have got the last verification.
  const isStale = (): boolean => {
    if (verifyEvery === undefined) return false;
    const verifiedAt = timeOfMark(revocations.markOf(`stream:${name}`, 'verified', '') ?? 0) / 1000;
    return now() - Math.max(startedAt, verifiedAt) > 2 * verifyEvery;
  };

  void connect();
  return {
    options,
    /** Verifies a token and does what it says. Rejects if its cutoff cannot be stored. */
    async receive(token: string): Promise<SignalOutcome> {
      const outcome = await receive(token);
      emit({ type: 'received', stream: name, outcome });
      return outcome;
    },
    state: (): 'ok' | 'connecting' | 'stale' => (keys === undefined ? 'connecting' : isStale() ? 'stale' : 'ok'),
    isStale,
    close(): void {
      closing.abort();
      found?.close();
    },
  };
}

export type OpenStream = ReturnType<typeof openStream>;

/** Reads the metadata of a transmitter. Rejects with `ProviderError`. */
async function readJwksUri(transmitter: string, outbound: Outbound): Promise<string> {
  const { value } = await outbound.fetchJson(metadataUrl(transmitter), limits);
  const { issuer, jwks_uri: jwksUri } = value;
  if (issuer !== transmitter) throw new ProviderError('foreign_issuer');
  if (!isPlainHttps(jwksUri)) throw new ProviderError('bad_jwks_uri');
  return jwksUri;
}

/** Inserts the well-known path between host and path (RFC 8615). */
export function metadataUrl(transmitter: string): string {
  const { origin, pathname } = new URL(transmitter);
  return `${origin}/.well-known/ssf-configuration${pathname.replace(/\/$/, '')}`;
}

export function isError(outcome: SignalOutcome): outcome is SecurityEventError {
  return (eventErrors as readonly SignalOutcome[]).includes(outcome);
}
