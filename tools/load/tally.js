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
  /** Milliseconds of timed requests, by the tenth of a second of the response. */
  const timesBySlot = new Map();
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
        const slot = slotNow();
        if (!timesBySlot.has(slot)) timesBySlot.set(slot, []);
        timesBySlot.get(slot).push(milliseconds);
      }
    },
    /** A connection broke under a request, or could not be made. */
    disturb() {
      disturbed.add(slotNow());
    },
    /** Plain data; `slowAbove` is the time in milliseconds beyond which a tenth of a second counts as disturbed. */
    report({ slowAbove = Number.POSITIVE_INFINITY } = {}) {
      const sorted = [...timesBySlot.values()].flat().sort((a, b) => a - b);
      const slow = [...timesBySlot].filter(([, times]) => median(times) > slowAbove).map(([slot]) => slot);
      const ends = [...disturbed, ...slow].map((slot) => (slot + 1) * slotMilliseconds);
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
