// Sends requests at a fixed rate, regardless of the responses: `node pacer.js URL FILE RATE SECONDS`. Each line of the
// file is an Authorization value and, after a tab, a proof. A latency counts from the time at which its request was
// due, so waits caused by other requests count too (no coordinated omission). Prints one line of JSON.
import { readFileSync } from 'node:fs';
import { quantile } from '../shared/statistics.js';
import { openConnection } from './connection.js';

const [, , address = '', file = '', rateText, secondsText] = process.argv;
const { hostname, port, host, pathname } = new URL(address);
const rate = Number(rateText);
const count = Math.round(rate * Number(secondsText));
const connections = 32;
/** Milliseconds after which a request without a response is lost. */
const patience = 3000;

const requests = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const [authorization, proof] = line.split('\t');
    const lines = [`GET ${pathname} HTTP/1.1`, `Host: ${host}`, `Authorization: ${authorization}`];
    return [...lines, ...(proof ? [`DPoP: ${proof}`] : []), '', ''].join('\r\n');
  });

/**
 * Milliseconds. `fromDue` is the latency for a client, `fromSent` the latency for a client that awaits each response.
 */
const fromDue = new Float64Array(count);
const fromSent = new Float64Array(count);
let answered = 0;
let unexpected = 0;

/** @type {any[]} */
const free = [];
let isOver = false;

/** Opens a connection. Resolves when it is ready for its first request. */
const open = () =>
  new Promise((resolve) => {
    openConnection(Number(port), {
      host: hostname,
      onReady(connection) {
        if (connection.isNew) resolve(undefined);
        connection.isNew = false;
        free.push(connection);
      },
      onAnswer({ item }, status) {
        const now = performance.now();
        fromDue[item.index] = now - dueAt(item.index);
        fromSent[item.index] = now - item.sentAt;
        if (status !== 200) unexpected++;
        answered++;
      },
      onClose() {
        if (!isOver) throw new Error('the server closed a connection');
      },
    });
  });
for (let i = 0; i < connections; i++) await open();

const startedAt = performance.now() + 20;
let next = 0;
/** The longest time for which this program did not look at its clock: what of the latencies may be its own. */
let longestPause = 0;
let lookedAt = startedAt;

function dueAt(index) {
  return startedAt + (index * 1000) / rate;
}

// The process never sleeps, so that no response has to wake it.
await new Promise((resolve) => {
  const turn = () => {
    const now = performance.now();
    if (now > startedAt) longestPause = Math.max(longestPause, now - lookedAt);
    lookedAt = Math.max(now, startedAt);
    while (next < count && free.length > 0 && dueAt(next) <= now) {
      const connection = free.pop();
      connection.item = { index: next, sentAt: performance.now() };
      connection.send(requests[next % requests.length]);
      next++;
    }
    if (answered === count || now > dueAt(count) + patience) resolve(undefined);
    else setImmediate(turn);
  };
  turn();
});

isOver = true;
const lost = count - answered;
const summarise = (values) => {
  const sorted = values.slice(0, next).sort();
  const [p50, p99, p999] = [0.5, 0.99, 0.999].map((share) => quantile(sorted, share));
  return { p50, p99, p999 };
};
const seconds = (performance.now() - startedAt) / 1000;
console.log(
  JSON.stringify({
    ...{ answered, lost, unexpected, rate: answered / seconds, longestPause },
    due: summarise(fromDue),
    sent: summarise(fromSent),
  }),
);
process.exit(0);
