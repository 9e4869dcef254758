// A stream of requests: at a constant rate regardless of the responses, or at full rate.
import { openConnection } from './connection.js';
import { openSource } from './sources.js';
import { createTally } from './tally.js';

const tickMilliseconds = 2;
const reconnectMilliseconds = 50;
/** Seconds of the rate that may wait; what is more was never sent, and is dropped. */
const maxWaitingSeconds = 5;
/** A request without a response by then is lost: longer than every promise, because the host may be busy. */
const maxAnswerSeconds = 60;

/**
 * Starts a stream: `rate` a second, or full rate without it; `limit` ends it after N requests.
 *
 * @param {any} options
 */
export function startStream({ port, connections: width, rate, limit = Number.POSITIVE_INFINITY, kinds }) {
  const host = `127.0.0.1:${port}`;
  const tally = createTally();
  const kindsByName = new Map(kinds.map((kind) => [kind.name, { ...kind, next: openSource(kind.source, host) }]));
  const connections = new Set();
  let idle = [];
  let waiting = [];
  let head = 0;
  /** Cut once; each waits for a connection that is new, for another old one may be just as dead. */
  const repeats = [];
  let issued = 0;
  let stopped = false;
  const startedAt = performance.now();

  let lots = drawLots(kindsByName);

  function issue(dueAt) {
    issued++;
    const kind = lots[Math.floor(Math.random() * lots.length)];
    return { kind, bytes: undefined, dueAt, expected: undefined, retried: false };
  }

  function take() {
    if (head < waiting.length) {
      const item = waiting[head++];
      if (head > 4096) {
        waiting = waiting.slice(head);
        head = 0;
      }
      return item;
    }
    return rate === undefined && !stopped && issued < limit ? issue(performance.now()) : undefined;
  }

  function pump() {
    let from = 0;
    for (; from < idle.length; from++) {
      const item = take();
      if (item === undefined) break;
      send(idle[from], item);
    }
    if (from > 0) idle = idle.slice(from);
  }

  function send(connection, item) {
    item.bytes ??= item.kind.next();
    item.expected = item.kind.expect;
    connection.item = item;
    if (!item.retried) tally.counts.sent++;
    connection.send(item.bytes);
  }

  const events = {
    onReady(connection) {
      const repeat = connection.isNew ? repeats.shift() : undefined;
      connection.isNew = false;
      if (repeat !== undefined) {
        send(connection, repeat);
        return;
      }
      idle.push(connection);
      pump();
    },
    onAnswer(connection, status, answerHead) {
      // A new connection on which no request is due for 10 s gets 408, and is closed.
      if (connection.item === undefined && status === 408) return;
      const { kind, bytes, dueAt, expected } = connection.item;
      connection.item = undefined;
      const milliseconds = performance.now() - dueAt;
      const allowed = (each) => expected.includes(each) || kind.expect.includes(each);
      tally.answer({ kind, status, head: answerHead, milliseconds, allowed });
      // The same once more, at once: what must be refused the second time.
      const again = status === 200 ? kindsByName.get(kind.again) : undefined;
      if (again !== undefined) waiting.push({ kind: again, bytes, dueAt: performance.now(), retried: false });
    },
    onClose(connection, wasOpen) {
      connections.delete(connection);
      idle = idle.filter((each) => each !== connection);
      const { item } = connection;
      if (item !== undefined || !wasOpen) tally.disturb();
      if (item !== undefined) loseOrRepeat(item);
      if (!stopped || pending() > 0) setTimeout(connectOne, reconnectMilliseconds);
    },
  };

  /** Repeats a GET whose connection broke, like every HTTP client (RFC 9110 §9.2.2). */
  function loseOrRepeat(item) {
    tally.counts.cut++;
    if (item.retried) tally.counts.lost++;
    else repeats.push({ ...item, retried: true });
  }

  function connectOne() {
    if (connections.size < width) connections.add(openConnection(port, events));
  }

  const pending = () =>
    waiting.length - head + repeats.length + [...connections].filter(({ item }) => item !== undefined).length;

  const tick = () => {
    if (stopped || rate === undefined) return;
    const due = Math.min(limit, Math.floor(((performance.now() - startedAt) / 1000) * rate));
    while (issued < due) waiting.push(issue(startedAt + (issued / rate) * 1000));
    const excess = waiting.length - head - rate * maxWaitingSeconds;
    if (excess > 0) {
      head += Math.floor(excess);
      tally.counts.dropped += Math.floor(excess);
    }
    pump();
  };
  const ticking = setInterval(tick, tickMilliseconds);

  for (let i = 0; i < width; i++) connectOne();

  return {
    /** The counts, and `done`: true if `limit` was reached and all requests have responses. */
    state: () => ({ done: issued >= limit && pending() === 0, ...tally.counts }),
    /** Sets the expected statuses by kind. Requests in flight may also get the earlier ones. */
    expect(statusesByKind) {
      for (const [name, statuses] of Object.entries(statusesByKind)) kindsByName.get(name).expect = statuses;
    },
    replace(name, source) {
      kindsByName.get(name).next = openSource(source, host);
    },
    weigh(name, weight) {
      kindsByName.get(name).weight = weight;
      lots = drawLots(kindsByName);
    },
    /** Sends no more, awaits the responses, and reports. */
    async stop(options) {
      stopped = true;
      // What was never sent is owed nothing.
      waiting = [];
      head = 0;
      for (
        const deadline = performance.now() + maxAnswerSeconds * 1000;
        pending() > 0 && performance.now() < deadline;
      ) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      tally.counts.lost += pending();
      repeats.length = 0;
      clearInterval(ticking);
      for (const connection of connections) {
        connection.item = undefined;
        connection.close();
      }
      return tally.report(options);
    },
  };
}

/** Every kind as often as it weighs. */
function drawLots(kindsByName) {
  return [...kindsByName.values()].flatMap((kind) => Array.from({ length: kind.weight }, () => kind));
}
