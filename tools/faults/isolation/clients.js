// Clients that send requests with random cuts, and compare every byte that comes back with what belongs to them.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { createRandom } from '../../shared/random.js';
import { cutAtRandom, pauseAtRandom } from './cuts.js';
import { markerOf, ownersOf } from './marker.js';
import { createResponseReader } from './response-reader.js';

const maxRequests = 12;
/** Milliseconds for one connection. */
const patience = 60_000;
/** Milliseconds before a write that needs its own read. */
const aloneMilliseconds = 2;
const maxExamples = 5;

/** Creates what counts requests and defects, for the clients, the upstream and the log. */
export function createTally() {
  const counts = { requests: 0, responses: 0, connections: 0, writes: 0, tunnels: 0 };
  const defects = new Map();
  return {
    counts,
    /** Records a defect; the first few have an example. */
    add(what, example = '') {
      const found = defects.get(what) ?? { times: 0, examples: [] };
      found.times++;
      if (example !== '' && found.examples.length < maxExamples) found.examples.push(example);
      defects.set(what, found);
    },
    /** One line for each kind of defect. */
    get defects() {
      return Array.from(defects, ([what, { times, examples }]) => [`${times} × ${what}`, ...examples].join('\n    '));
    },
  };
}

/**
 * Sends `requests` to a port, over `width` connections at a time, in kinds from a table of `kinds.js`. `first` is the number
 * of the first connection: no two connections of one run have the same number. Returns the number after the last one.
 */
export async function runClients({ port, kinds, requests, width, seed, first, mint, tally, tls = false }) {
  const start = tally.counts.requests;
  let next = first;
  const work = async () => {
    while (tally.counts.requests - start < requests) {
      const number = next++;
      await converse({
        port,
        kinds,
        number,
        mint,
        tally,
        tls,
        random: createRandom(Math.imul(seed, 0x9e3779b1) ^ number),
      });
    }
  };
  await Promise.all(Array.from({ length: width }, work));
  return next;
}

/** One connection: from its first byte to its end. */
async function converse({ port, kinds, number, mint, tally, tls, random }) {
  const subject = markerOf(number, 0);
  const context = { subject, ...mint(subject), random, host: `127.0.0.1:${port}` };
  const plan = makePlan({ kinds, random });
  // Some connections end early: what they leave behind in the service must not reach another one.
  const isAborted = random.chance(0.05);

  /** Requests without a response so far. */
  const pending = [];
  /** True once the client has ended the connection in the middle, or the service may. */
  let isOver = false;
  let progress = () => {};
  const settled = () => /** @type {Promise<void>} */ (new Promise((resolve) => (progress = resolve)));
  const defect = (what, example) => tally.add(what, `connection ${number}: ${example}`);

  const socket = tls ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const opened = new Promise((resolve) => socket.once(tls ? 'secureConnect' : 'connect', resolve));
  // The close that follows reports it.
  let failure = 'no error';
  socket.on('error', ({ code, message }) => {
    failure = code ?? message;
  });
  const deadline = setTimeout(() => {
    defect('a connection that makes no progress', pending[0]?.name);
    isOver = true;
    socket.destroy();
  }, patience);
  tally.counts.connections++;

  let tunnelled = '';
  const reader = createResponseReader({
    methodOf: () => pending[0]?.method,
    onResponse(response) {
      tally.counts.responses++;
      const request = pending.shift();
      const problem = request?.expect(response);
      const last = pending.at(-1);
      if (request === undefined) {
        if (!isOver) defect('a response to no request', `status ${response.status}`);
      } else if (problem === undefined) {
        isOver ||= request.isLossy;
      } else if (last?.isLossy && last.expect(response) === undefined) {
        // Requests before a malformed one may be without a response.
        pending.length = 0;
        isOver = true;
      } else defect('not the response to the request', `${request.name}: ${problem}`);
      progress();
    },
    onTunnel(bytes) {
      tunnelled += bytes;
      progress();
    },
    onDefect: (what) => defect('not a response', what),
  });
  let tail = '';
  socket.on('data', (chunk) => {
    const bytes = chunk.toString('latin1');
    // A marker that a read has cut in two is complete with the next one.
    const strangers = [...ownersOf(tail + bytes)].filter((owner) => owner !== number);
    tail = (tail + bytes).slice(1 - subject.length);
    if (strangers.length > 0) defect('a marker of another connection in a response', `of ${strangers.join(', ')}`);
    reader.read(bytes);
  });
  socket.on('close', () => progress());

  async function send(bytes, alone = []) {
    for (const [i, piece] of cutAtRandom(bytes, random, alone).entries()) {
      if (i > 0) await (alone.length > 0 ? sleep(aloneMilliseconds) : pauseAtRandom(random));
      if (socket.destroyed || socket.writableEnded) return;
      tally.counts.writes++;
      socket.write(piece, 'latin1');
    }
  }

  async function useTunnel({ tunnel }) {
    let sent = tunnel;
    const isBack = () => tunnelled.length >= sent.length || socket.destroyed || pending.length === 0;
    for (let rounds = random.between(0, 3); ; rounds--) {
      while (!isBack()) await settled();
      // Without one: the upstream has refused.
      if (pending.length === 0) return;
      isOver = true;
      if (rounds === 0 || socket.destroyed) break;
      const more = tunnel.slice(0, random.between(1, tunnel.length));
      sent += more;
      await send(more);
    }
    // An upgrade is refused while the process has not yet seen that the response before it is sent.
    if (tunnelled === '' && sequence > 1) return;
    tally.counts.tunnels++;
    if (tunnelled === sent) return;
    const lengths = `${tunnelled.length} instead of ${sent.length}`;
    defect('a tunnel with other bytes', `${lengths}, ${socket.bytesRead} read in all, ${failure}`);
  }

  await Promise.race([opened, closed]);
  let sequence = 0;
  for (const group of plan) {
    if (socket.destroyed) break;
    const requests = group.map((kind) => {
      const request = kind.write({ ...context, marker: markerOf(number, sequence++) });
      return { ...request, isLossy: kind.isLossy === true, name: request.bytes.slice(0, 60).split('\r\n', 1)[0] };
    });
    const bytes = requests.map((request) => request.bytes).join('');
    tally.counts.requests += requests.length;
    pending.push(...requests);
    if (isAborted && group === plan.at(-1)) {
      isOver = true;
      await send(bytes.slice(0, random.between(1, bytes.length)));
      if (random.chance(0.5)) await pauseAtRandom(random);
      break;
    }
    const [last] = requests.slice(-1);
    await send(bytes, last.cuts);
    if (last.tunnel !== undefined) await useTunnel(last);
    while (!isOver && pending.length > 0 && !socket.destroyed) await settled();
  }

  if (isOver || random.chance(0.5)) socket.destroy();
  else socket.end();
  await closed;
  clearTimeout(deadline);
  if (!isOver && pending.at(-1)?.isLossy !== true) {
    if (pending.length > 0) defect('requests without a response', pending.map(({ name }) => name).join(', '));
    else if (!reader.end()) defect('a response without its end', '');
  }
}

/** Groups of requests: each group is sent without waiting, the next one after its last response. */
function makePlan({ kinds, random }) {
  const groups = [];
  const count = random.between(1, maxRequests);
  const width = random.pick([1, 1, 2, 4, maxRequests]);
  let group = [];
  for (let i = 0; i < count; i++) {
    const kind = random.weigh(kinds);
    // Behind a pending request an upgrade is refused.
    if (kind.isLast === true && kind.isLossy !== true && group.length > 0) groups.push(group.splice(0));
    group.push(kind);
    if (kind.isLast === true) break;
    if (group.length >= width) {
      groups.push(group);
      group = [];
    }
  }
  if (group.length > 0) groups.push(group);
  return groups;
}
