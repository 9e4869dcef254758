import type { NoteKind } from '../record.ts';
import type { RevocationParts } from '../revocations.ts';
import type { Stream } from './stream-options.ts';

export interface StreamHealth {
  markOf(kind: NoteKind, key?: string): number | undefined;
  note(kind: NoteKind, mark: number, key?: string): Promise<void>;
  /** Seconds between two verifications. */
  period(): number;
  isPaused(): boolean;
  notePaused(isPaused: boolean): Promise<void>;
  /** True if events may fail to arrive. */
  isStale(): boolean;
}

/** Seconds for which facts about a stream are retained. */
const retention = 30 * 86_400;

/** Creates the health of a stream. `now` returns seconds since the epoch. */
export function createStreamHealth(
  { name, delivery, verifyEvery }: Pick<Stream, 'name' | 'delivery' | 'verifyEvery'>,
  revocations: Pick<RevocationParts, 'markOf' | 'note'>,
  now: () => number,
): StreamHealth {
  const scope = `stream:${name}`;
  const startedAt = now();
  const health: StreamHealth = {
    markOf: (kind, key = '') => revocations.markOf(scope, kind, key),
    note: (kind, mark, key = '') => revocations.note(scope, kind, key, { mark: Math.round(mark), seconds: retention }),
    period: () => Math.max(verifyEvery, health.markOf('period') ?? 0),
    // The time of the last change, and whether it paused the stream.
    isPaused: () => (health.markOf('paused') ?? 0) % 2 === 1,
    async notePaused(isPaused) {
      if (isPaused === health.isPaused()) return;
      // The greatest mark counts, so that two changes within a millisecond need marks that rise.
      const mark = Math.round(now() * 1000) * 2 + (isPaused ? 1 : 0);
      const last = health.markOf('paused') ?? 0;
      await health.note('paused', mark > last ? mark : last + 1);
    },
    isStale() {
      if (health.isPaused()) return true;
      const isVerifiable = health.markOf('unverifiable') === undefined;
      if (!isVerifiable && delivery === 'push') return false;
      const lastSign = health.markOf(isVerifiable ? 'verified' : 'polled') ?? 0;
      return now() - Math.max(startedAt, lastSign) > 2 * health.period();
    },
  };
  return health;
}
