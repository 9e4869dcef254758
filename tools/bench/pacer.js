// Sends requests at a fixed rate, whatever the answers do: `node pacer.js URL FILE RATE SECONDS`. Each line of the file is an
// Authorization value and, after a tab, a proof. A latency counts from the moment at which its request was due: what has to
// wait because others are late has waited (no coordinated omission). Prints one line of JSON.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { quantile } from './statistics.js';

const [, , address = '', file = '', rateText, secondsText] = process.argv;
const { hostname, port, host, pathname } = new URL(address);
const rate = Number(rateText);
const count = Math.round(rate * Number(secondsText));
const connections = 32;
/** Milliseconds after which what has not been answered counts as lost. */
const patience = 3000;

const requests = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const [authorization, proof] = line.split('\t');
    const lines = [`GET ${pathname} HTTP/1.1`, `Host: ${host}`, `Authorization: ${authorization}`];
    return Buffer.from([...lines, ...(proof ? [`DPoP: ${proof}`] : []), '', ''].join('\r\n'), 'latin1');
  });

/** Milliseconds. `fromDue` is what a client waits, `fromSent` what one would see that waits for each answer. */
const fromDue = new Float64Array(count);
const fromSent = new Float64Array(count);
let answered = 0;
let unexpected = 0;

/** Reads answers off one connection; told when one is complete. */
function openConnection(onAnswer) {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let expected = 0;
  socket.on('data', (chunk) => {
    if (expected === 0) {
      const head = chunk.indexOf('\r\n\r\n');
      const text = chunk.toString('latin1', 0, head);
      if (!text.startsWith('HTTP/1.1 200')) unexpected++;
      expected = head + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
    }
    expected -= chunk.length;
    if (expected <= 0) {
      expected = 0;
      onAnswer();
    }
  });
  socket.on('error', (error) => {
    throw error;
  });
  return socket;
}

/** @type {any[]} */
const free = [];
for (let i = 0; i < connections; i++) {
  const connection = { current: 0, sentAt: 0 };
  const socket = openConnection(() => {
    const now = performance.now();
    fromDue[connection.current] = now - dueAt(connection.current);
    fromSent[connection.current] = now - connection.sentAt;
    answered++;
    free.push(connection);
  });
  await once(socket, 'connect');
  free.push(Object.assign(connection, { socket }));
}

const startedAt = performance.now() + 20;
let next = 0;
/** The longest time for which this program did not look at its clock: what of the latencies may be its own. */
let longestPause = 0;
let lookedAt = startedAt;

function dueAt(index) {
  return startedAt + (index * 1000) / rate;
}

// It never sleeps, so that no answer has to wake it.
await new Promise((resolve) => {
  const turn = () => {
    const now = performance.now();
    if (now > startedAt) longestPause = Math.max(longestPause, now - lookedAt);
    lookedAt = Math.max(now, startedAt);
    while (next < count && free.length > 0 && dueAt(next) <= now) {
      const connection = free.pop();
      connection.current = next;
      connection.sentAt = performance.now();
      connection.socket.write(requests[next % requests.length]);
      next++;
    }
    if (answered === count || now > dueAt(count) + patience) resolve(undefined);
    else setImmediate(turn);
  };
  turn();
});

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
