import type { Decision, Note, StreamedDecisions } from '../../server/console/wire.ts';
import { useEffect, useState } from './view.ts';

/** State of the event stream. `closed`: the service no longer knows this browser. */
export type ConnectionState = 'connecting' | 'open' | 'reconnecting' | 'closed';

export interface Live {
  readonly connection: ConnectionState;
  /** Newest first. */
  readonly decisions: readonly Decision[];
  readonly dropped: number;
  readonly count: number;
  /** Grows with each event of the service. */
  readonly revision: number;
}

/** Listed decisions, as many as the service keeps. Admitted requests do not displace refused ones. */
const maxRefused = 200;
const maxOthers = 100;

export function useLive(): Live {
  const [live, update] = useState<Live>({ connection: 'connecting', decisions: [], dropped: 0, count: 0, revision: 0 });
  useEffect(() => {
    const source = new EventSource('/console/api/events');
    const on = (name: string, take: (data: string) => void): void =>
      source.addEventListener(name, (event) => take(String((event as MessageEvent).data))); // an EventSource dispatches MessageEvent
    on('recent', (data) => {
      const { decisions }: StreamedDecisions = JSON.parse(data);
      update((before) => ({
        ...before,
        connection: 'open',
        revision: before.revision + 1,
        decisions: keepLast(decisions.toReversed()),
      }));
    });
    on('decisions', (data) => {
      const { decisions, dropped }: StreamedDecisions = JSON.parse(data);
      update((before) => ({
        ...before,
        decisions: keepLast([...decisions.toReversed(), ...before.decisions]),
        dropped: before.dropped + dropped,
        count: before.count + decisions.length + dropped,
      }));
    });
    on('note', (data) => {
      const note: Note = JSON.parse(data);
      if (note.event !== '') update((before) => ({ ...before, revision: before.revision + 1 }));
    });
    source.addEventListener('error', () => {
      const connection = source.readyState === EventSource.CLOSED ? 'closed' : 'reconnecting';
      update((before) => ({ ...before, connection }));
    });
    return () => source.close();
  }, []);
  return live;
}

/** Keeps the first ones; the newest come first. */
function keepLast(decisions: readonly Decision[]): readonly Decision[] {
  const kept = { refused: 0, others: 0 };
  return decisions.filter(({ reason }) =>
    reason === undefined ? kept.others++ < maxOthers : kept.refused++ < maxRefused,
  );
}
