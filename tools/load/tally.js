// Outcomes of the requests of one stream.
import { median, quantile } from '../shared/statistics.js';

const slotMilliseconds = 100;

const add = (counts, name) => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/** Creates an empty tally. */
export function createTally() {
  const statuses = {};
  /** Counts by kind and status, such as `good 401`. */
  const byKind = {};
  const wrong = {};
  const unexplained = {};
  /** Milliseconds, and the tenth of a second of the response, of timed requests. */
  const times = [];
  const slots = [];
  const disturbed = new Set();
  const counts = { sent: 0, answered: 0, cut: 0, lost: 0, dropped: 0 };
  const slotNow = () => Math.floor(Date.now() / slotMilliseconds);

  return {
    counts,
    /**
     * Records a response to `kind` after `milliseconds`. `allowed` reports whether a status is expected now, or was
     * when the request was sent.
     */
    answer({ kind, status, head, milliseconds, allowed }) {
      counts.answered++;
      add(statuses, status);
      add(byKind, `${kind.name} ${status}`);
      const isUnavailable = status === 503 && /\r\nretry-after: /i.test(head) && !/\r\nwww-authenticate: /i.test(head);
      if (status >= 500) {
        disturbed.add(slotNow());
        const isOfUpstream = kind.upstreamFails === true && (status === 502 || status === 504);
        if (!allowed(status) || !(isUnavailable || isOfUpstream)) add(unexplained, `${kind.name} ${status}`);
      } else if (!allowed(status)) add(wrong, `${kind.name} ${status}`);
      if (kind.timed) {
        times.push(milliseconds);
        slots.push(slotNow());
      }
    },
    /** A connection broke under a request, or could not be made. */
    disturb() {
      disturbed.add(slotNow());
    },
    /** Plain data; `slowAbove` is the time in milliseconds beyond which a tenth of a second counts as disturbed. */
    report({ slowAbove = Number.POSITIVE_INFINITY } = {}) {
      const sorted = times.toSorted((a, b) => a - b);
      const ends = [...disturbed, ...slowSlots(times, slots, slowAbove)].map((slot) => (slot + 1) * slotMilliseconds);
      return {
        ...counts,
        statuses,
        byKind,
        wrong,
        unexplained,
        p50: sorted.length === 0 ? undefined : quantile(sorted, 0.5),
        p99: sorted.length === 0 ? undefined : quantile(sorted, 0.99),
        /** End of the last disturbance, in milliseconds since the epoch. */
        lastDisturbed: ends.reduce((last, end) => Math.max(last, end), 0),
      };
    },
  };
}

function slowSlots(times, slots, slowAbove) {
  return [...groupBySlot(times, slots)].filter(([, inSlot]) => median(inSlot) > slowAbove).map(([slot]) => slot);
}

function groupBySlot(times, slots) {
  const bySlot = new Map();
  for (const [index, slot] of slots.entries()) {
    const inSlot = bySlot.get(slot);
    if (inSlot === undefined) bySlot.set(slot, [times[index]]);
    else inSlot.push(times[index]);
  }
  return bySlot;
}
