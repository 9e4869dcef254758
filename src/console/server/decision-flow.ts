import type { SendBatch } from '../../server/console/opened-console.ts';
import type { Decision, DecisionFacts } from '../../server/console/wire.ts';

/** Interval of batches, in milliseconds. */
const interval = 100;
/** Maximum number of decisions in one batch. Admitted requests do not displace refused ones. */
const maxRefused = 40;
const maxOthers = 20;

/** Collects decisions. Excess decisions are only counted. */
export interface DecisionFlow {
  add(decision: Decision): void;
  addFacts(facts: DecisionFacts): void;
  /** Counts a decision that is not sent. */
  drop(): void;
  hasRoom(kind: 'refused' | 'other'): boolean;
}

/** Creates a flow. It holds one batch, and a second one while the first is in flight. */
export function createDecisionFlow(send: SendBatch): DecisionFlow {
  let refused: Decision[] = [];
  let others: Decision[] = [];
  let facts: DecisionFacts[] = [];
  let dropped = 0;
  let isPlanned = false;
  let isInFlight = false;

  const flush = (): void => {
    isPlanned = false;
    if (isInFlight) return;
    const batch = { decisions: [...refused, ...others].toSorted(byTime), facts, dropped };
    refused = [];
    others = [];
    facts = [];
    dropped = 0;
    isInFlight = true;
    send(batch, () => {
      isInFlight = false;
      if (refused.length + others.length + facts.length + dropped > 0) schedule();
    });
  };
  const schedule = (): void => {
    if (!isPlanned) setTimeout(flush, interval).unref();
    isPlanned = true;
  };
  const hasRoom = (kind: 'refused' | 'other'): boolean =>
    kind === 'refused' ? refused.length < maxRefused : others.length < maxOthers;

  return {
    hasRoom,
    add(decision) {
      (decision.reason === undefined ? others : refused).push(decision);
      schedule();
    },
    addFacts(each) {
      schedule();
      // Facts may arrive one batch after their decisions.
      if (facts.length < maxRefused + maxOthers) facts.push(each);
    },
    drop() {
      dropped++;
      schedule();
    },
  };
}

function byTime(one: Decision, other: Decision): number {
  return one.at < other.at ? -1 : Number(one.at > other.at);
}
