import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Running } from '../adapters/frameworks.ts';
import { superviseChild } from '../support/service-process.ts';
import { askControl, type Control } from './control.ts';
import type { Order } from './order.ts';
import type { Programs } from './programs.ts';
import { describeWorker } from './worker-config.ts';

/** Addresses of a program. */
interface Places {
  readonly origin: string;
  /** Origin for commands. */
  readonly control: string;
  /** Origin of the Workers example. */
  readonly example?: string;
}

/** Reports whether a command line starts workerd, which takes a configuration instead of a program. */
export function isWorkerd([binary = '']: readonly string[]): boolean {
  return basename(binary) === 'workerd';
}

/** A framework on another runtime. */
export type Launched = Running & Control & Pick<Places, 'example'>;

/** Starts one framework on another runtime and waits until it listens; rejects with what it wrote where it ends first. */
export async function launch(words: readonly string[], programs: Programs, order: Order): Promise<Launched> {
  const [binary = '', ...args] = words;
  const text = JSON.stringify(order);
  const child = isWorkerd(words)
    ? await spawnWorkerd(binary, programs.worker, order)
    : spawn(binary, [...args, programs.server, text], { stdio: ['pipe', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (more: string) => {
    complaint += more;
  });
  const ended = superviseChild(child);
  const output = isWorkerd(words) ? readSockets(child) : readPlaces(child);
  const places = await Promise.race([output, ended]);
  if (!('origin' in places)) throw new Error(`${basename(binary)} has ended before it listened: ${complaint}`);
  const { control, ...open } = places;
  return {
    ...open,
    ...askControl(control),
    async close() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function spawnWorkerd(binary: string, worker: string, order: Order): Promise<ChildProcess> {
  const config = join(dirname(worker), `${basename(order.name)}-${process.pid}-${configs++}.capnp`);
  await writeFile(config, describeWorker({ worker: basename(worker), order }));
  return spawn(binary, ['serve', '--control-fd=3', config], { stdio: ['ignore', 'ignore', 'pipe', 'pipe'] });
}

let configs = 0;

/** The one line that server.ts writes. */
async function readPlaces({ stdout }: ChildProcess): Promise<Places> {
  for await (const line of createInterface({ input: stdout as Readable })) return JSON.parse(line) as Places;
  return new Promise(() => undefined); // it has ended, which other code reports
}

interface ListenEvent {
  readonly event: string;
  readonly socket?: string;
  readonly port?: number;
}

/** workerd writes a line for each socket of its configuration. */
async function readSockets({ stdio }: ChildProcess): Promise<Places> {
  const found = new Map<string, string>();
  for await (const line of createInterface({ input: stdio[3] as Readable })) {
    const { event, socket = '', port } = JSON.parse(line) as ListenEvent;
    if (event === 'listen') found.set(socket, `http://127.0.0.1:${port}`);
    const [origin, control, example] = ['app', 'control', 'example'].map((name) => found.get(name));
    if (origin !== undefined && control !== undefined && example !== undefined) return { origin, control, example };
  }
  return new Promise(() => undefined); // it has ended, which other code reports
}
