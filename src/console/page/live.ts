import type { Decision, StreamedDecisions } from '../../server/console/wire.ts';
import { useEffect, useState } from './view.ts';

export interface Live {
  /** State of the event stream. `closed`: the service no longer knows this browser. */
  readonly connection: 'connecting' | 'open' | 'reconnecting' | 'closed';
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
    const on = (name: string, change: (before: Live, data: string) => Partial<Live>): void =>
      source.addEventListener(name, (event) => {
        const { data } = event as MessageEvent; // without data for `error`
        update((before) => ({ ...before, ...change(before, String(data)) }));
      });
    on('recent', ({ revision }, data) => {
      const { decisions }: StreamedDecisions = JSON.parse(data);
      return { connection: 'open', revision: revision + 1, decisions: keepLast(decisions.toReversed()) };
    });
    on('decisions', (before, data) => {
      const { decisions, dropped }: StreamedDecisions = JSON.parse(data);
      return {
        decisions: keepLast([...decisions.toReversed(), ...before.decisions]),
        dropped: before.dropped + dropped,
        count: before.count + decisions.length + dropped,
      };
    });
    on('note', ({ revision }) => ({ revision: revision + 1 }));
    on('error', () => ({ connection: source.readyState === EventSource.CLOSED ? 'closed' : 'reconnecting' }));
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
