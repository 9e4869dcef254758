// What became of the requests of one stream.
const slotMilliseconds = 100;

const add = (counts, name) => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/** Creates an empty tally. */
export function createTally() {
  const statuses = {};
  /** By kind and status, such as `good 401`. */
  const byKind = {};
  const wrong = {};
  const unexplained = {};
  /** Milliseconds, and the tenth of a second of the answer, of the requests whose time counts. */
  const times = [];
  const slots = [];
  const disturbed = new Set();
  const counts = { sent: 0, answered: 0, cut: 0, lost: 0, dropped: 0 };
  const slotNow = () => Math.floor(Date.now() / slotMilliseconds);

  return {
    counts,
    /** An answer to `kind` after so many `milliseconds`; `allowed` tells whether a status is right now, or was when it was sent. */
    answer({ kind, status, head, milliseconds, allowed }) {
      counts.answered++;
      add(statuses, status);
      add(byKind, `${kind.name} ${status}`);
      const isUnavailable = status === 503 && /\r\nretry-after: /i.test(head) && !/\r\nwww-authenticate: /i.test(head);
      if (status >= 500) {
        disturbed.add(slotNow());
        if (!allowed(status) || !isUnavailable) add(unexplained, `${kind.name} ${status}`);
      } else if (!allowed(status)) {
        add(wrong, `${kind.name} ${status}`);
      }
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
      const sorted = Float64Array.from(times).sort();
      const ends = [...disturbed, ...slowSlots(times, slots, slowAbove)].map((slot) => (slot + 1) * slotMilliseconds);
      return {
        ...counts,
        statuses,
        byKind,
        wrong,
        unexplained,
        p50: quantile(sorted, 0.5),
        p99: quantile(sorted, 0.99),
        /** When the last disturbance ended, in milliseconds since the epoch. */
        lastDisturbed: ends.reduce((last, end) => Math.max(last, end), 0),
      };
    },
  };
}

function slowSlots(times, slots, slowAbove) {
  const median = (inSlot) => quantile(Float64Array.from(inSlot).sort(), 0.5);
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

function quantile(sorted, share) {
  return sorted.length === 0 ? undefined : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
