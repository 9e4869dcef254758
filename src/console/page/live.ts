import type { Decision, Note, StreamedDecisions } from '../../server/console/wire.ts';
import { useEffect, useState } from './view.ts';

/** Whether the page hears of decisions: `over` if the service does not know this browser any more. */
export type Line = 'opening' | 'open' | 'waiting' | 'over';

/** What the page has heard. */
export interface Live {
  readonly line: Line;
  /** Newest first. */
  readonly decisions: readonly Decision[];
  /** How many were too many to be shown. */
  readonly dropped: number;
  /** How many have come since the page was opened. */
  readonly count: number;
  /** Changes when something happened to the service. */
  readonly news: number;
}

/** Decisions that are shown, as many as the service keeps: a refused one is not lost among the others. */
const maxRefused = 200;
const maxOthers = 100;

/** Listens to what goes on. */
export function useLive(): Live {
  const [live, update] = useState<Live>({ line: 'opening', decisions: [], dropped: 0, count: 0, news: 0 });
  useEffect(() => {
    const source = new EventSource('/console/api/events');
    const on = (name: string, take: (data: string) => void): void =>
      source.addEventListener(name, (event) => take(String((event as MessageEvent).data))); // what a source sends
    on('recent', (data) => {
      const { decisions }: StreamedDecisions = JSON.parse(data);
      update((before) => ({
        ...before,
        line: 'open',
        news: before.news + 1,
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
      if (note.event !== '') update((before) => ({ ...before, news: before.news + 1 }));
    });
    source.addEventListener('error', () => {
      const line = source.readyState === EventSource.CLOSED ? 'over' : 'waiting';
      update((before) => ({ ...before, line }));
    });
    return () => source.close();
  }, []);
  return live;
}

/** The newest come first. */
function keepLast(decisions: readonly Decision[]): readonly Decision[] {
  const kept = { refused: 0, others: 0 };
  return decisions.filter(({ reason }) =>
    reason === undefined ? kept.others++ < maxOthers : kept.refused++ < maxRefused,
  );
}
