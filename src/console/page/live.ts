import type { Decision, StreamedDecisions } from '../../server/console/wire.ts';
import { useEffect, useState } from './view.ts';

export interface Live {
  /** State of the event stream. `closed`: the service has another key. `stopped`: it does not respond. */
  readonly connection: 'connecting' | 'open' | 'reconnecting' | 'closed' | 'stopped';
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
/** Number of failed connections after which the service has stopped. A browser tries again after 3 s or more. */
const maxFailures = 3;

export function useLive(): Live {
  const [live, update] = useState<Live>({ connection: 'connecting', decisions: [], dropped: 0, count: 0, revision: 0 });
  useEffect(() => {
    const source = new EventSource('/console/api/events');
    let failures = 0;
    const on = (name: string, change: (before: Live, data: string) => Partial<Live>): void =>
      source.addEventListener(name, (event) => {
        const { data } = event as MessageEvent; // an EventSource dispatches MessageEvent
        update((before) => ({ ...before, ...change(before, String(data)) }));
      });
    on('recent', ({ revision }, data) => {
      const { decisions }: StreamedDecisions = JSON.parse(data);
      failures = 0;
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
    source.addEventListener('error', () => {
      failures++;
      const lost = failures < maxFailures ? 'reconnecting' : 'stopped';
      const connection = source.readyState === EventSource.CLOSED ? 'closed' : lost;
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
