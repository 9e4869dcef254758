// The cost of waking a reader that sleeps on the other processor: one byte, written to a sleeping reader and to a busy
// one. As its own program, this file is one of both sides.
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { processors, startChild } from '../shared/processes.js';
import { median } from '../shared/statistics.js';

const writes = 4000;
/** Nanoseconds between two writes: the reader is asleep again by then. */
const pause = 60_000n;
const byte = Buffer.from('.');
const end = Buffer.from('!');
const [, , side, fifo] = process.argv;
const sides = { writer: write, asleep: () => read('asleep'), awake: () => read('awake') };

function write() {
  const file = openSync(fifo, 'w');
  const taken = [];
  for (let i = 0; i < writes; i++) {
    const until = process.hrtime.bigint() + pause;
    while (process.hrtime.bigint() < until);
    const startedAt = process.hrtime.bigint();
    writeSync(file, byte);
    taken.push(Number(process.hrtime.bigint() - startedAt) / 1000);
  }
  writeSync(file, end);
  closeSync(file);
  // The first half compiles what it runs; others on the machine only ever add to the rest, and the median leaves them out.
  console.log(median(taken.slice(writes / 2)));
}

function read(mode) {
  const file = openSync(fifo, constants.O_RDONLY | (mode === 'awake' ? constants.O_NONBLOCK : 0));
  const buffer = Buffer.alloc(64);
  for (;;) {
    try {
      const length = readSync(file, buffer);
      if (buffer.subarray(0, length).includes(end)) return;
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && Object.hasOwn(sides, side ?? '')) sides[side]();

/** µs that one write costs, by whether its reader sleeps. */
async function measureWrite(folder, mode) {
  const path = join(folder, `waking-${mode}`);
  execFileSync('mkfifo', [path]);
  const words = (name) => [process.execPath, fileURLToPath(import.meta.url), name, path];
  const reader = startChild(words(mode), { processor: processors.load, stdio: 'inherit' });
  const writer = startChild(words('writer'), { processor: processors.server, stdio: ['ignore', 'pipe', 'inherit'] });
  const [output] = await Promise.all([text(writer.child.stdout), reader.ended, writer.ended]);
  return Number(output);
}

/** µs that a sleeping reader adds to one write. */
export async function measureWaking({ folder }) {
  const asleep = await measureWrite(folder, 'asleep');
  const awake = await measureWrite(folder, 'awake');
  return { asleep, awake, waking: Math.max(0, asleep - awake) };
}
