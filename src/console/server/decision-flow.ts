import type { SendBatch } from '../../server/console/opened-console.ts';
import type { Decision, DecisionFacts } from '../../server/console/wire.ts';

/** Milliseconds for which decisions are gathered. */
const interval = 100;
/** Decisions of one batch, at most: the refused ones are not lost among the others. */
const maxRefused = 40;
const maxOthers = 20;

/** Takes decisions, as many as come; what is too much is only counted. */
export interface DecisionFlow {
  /** Takes a decision that there is room for. */
  add(decision: Decision): void;
  addFacts(facts: DecisionFacts): void;
  /** Counts a decision that nobody has described: there is no room for it. */
  drop(): void;
  /** Whether there is room for one more. */
  hasRoom(kind: 'refused' | 'other'): boolean;
}

/** Creates a flow. It holds one batch, and a second one only while the first is on its way. */
export function createDecisionFlow(send: SendBatch): DecisionFlow {
  let refused: Decision[] = [];
  let others: Decision[] = [];
  let facts: DecisionFacts[] = [];
  let dropped = 0;
  let isPlanned = false;
  let isOnItsWay = false;

  const flush = (): void => {
    isPlanned = false;
    if (isOnItsWay) return;
    const batch = { decisions: [...refused, ...others].toSorted(byTime), facts, dropped };
    refused = [];
    others = [];
    facts = [];
    dropped = 0;
    isOnItsWay = true;
    send(batch, () => {
      isOnItsWay = false;
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
      // As many as there are decisions: they may come one batch later.
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
