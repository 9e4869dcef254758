// Child processes of a run: pinned to processors, measured with their children, ended by their ids.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

const taskset = '/usr/bin/taskset';

/** Processors of the host. A pinned process sees only its own. */
export const processorCount = availableParallelism();

/** True if servers and load run on separate processors. */
export const pinned = processorCount > 1 && existsSync(taskset);

/** The processor of the servers, and the processors of the load, as `taskset` lists. */
export const processors = {
  server: '0',
  load: processorCount > 2 ? `1-${processorCount - 1}` : '1',
  all: `0-${processorCount - 1}`,
};

/** Moves this process to the processors of the load. */
export function pinThis() {
  if (pinned) execFileSync(taskset, ['-a', '-p', '-c', processors.load, `${process.pid}`], { stdio: 'ignore' });
}

const living = new Set();

process.once('exit', () => {
  for (const pid of [...living].flatMap((child) => tree(child.pid))) attempt(() => process.kill(pid, 'SIGKILL'), false);
});
// A test runner ends its processes by itself.
if (process.env['VITEST'] === undefined) {
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
}

/**
 * Starts a process that ends with this one. `ended` settles with its exit code or the name of the signal; `orEnd` settles like a
 * promise, or rejects if the process ends first. `processor` is a list for `taskset`.
 *
 * @param {readonly string[]} words
 * @param {any} options
 * @returns {{ pid: number | undefined, child: any, ended: Promise<any>, orEnd: <T>(awaited: Promise<T>, name: string) => Promise<T> }}
 */
export function startChild(words, { processor, ...options }) {
  const isPinned = pinned && processor !== undefined;
  const [command, ...args] = isPinned ? [taskset, '-c', processor, ...words] : words;
  const child = spawn(command, args, options);
  living.add(child);
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      living.delete(child);
      resolve(code ?? signal);
    });
  });
  ended.catch(() => living.delete(child));
  const orEnd = (awaited, name) =>
    Promise.race([awaited, ended.then((status) => Promise.reject(new Error(`${name} ended with ${status}`)))]);
  return { pid: child.pid, child, ended, orEnd };
}

/** Sends SIGTERM, and SIGKILL after 12 s. Resolves with the exit code or the name of the signal. */
export async function endChild({ child, ended }) {
  child.kill('SIGTERM');
  const last = setTimeout(() => child.kill('SIGKILL'), 12_000);
  const status = await ended.catch(() => undefined);
  clearTimeout(last);
  return status;
}

/**
 * Starts a program that calls `serveRequests`, on the processors of the load. `ask` sends a request and resolves with the reply;
 * it rejects if the process ends first. `end` ends the process.
 */
export function startHelper(program) {
  const helper = startChild([process.execPath, fileURLToPath(program)], {
    processor: processors.load,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const { child, orEnd } = helper;
  const pending = new Map();
  let next = 0;
  child.on('message', ({ id, reply }) => {
    pending.get(id)?.(reply);
    pending.delete(id);
  });
  const ask = (command, detail) => {
    const id = next++;
    const reply = new Promise((resolve) => pending.set(id, resolve));
    child.send({ id, command, detail });
    return orEnd(reply, 'a helper process');
  };
  return { ask, end: () => endChild(helper) };
}

/** Serves the requests of the parent process with the functions of `commands`. Exits when the parent disconnects. */
export function serveRequests(commands) {
  process.on('message', async ({ id, command, detail }) => {
    process.send?.({ id, reply: await commands[command](detail) });
  });
  process.on('disconnect', () => process.exit(0));
}

/** Calls a function. Returns `otherwise` if it throws, because a process has ended. */
function attempt(act, otherwise) {
  try {
    return act();
  } catch {
    return otherwise;
  }
}

/** Reads a file of /proc. */
const read = (path) => attempt(() => readFileSync(path, 'utf8'), '');
const threadsOf = (pid) => attempt(() => readdirSync(`/proc/${pid}/task`), []);

/** Lists the direct children of a process. */
export const childrenOf = (pid) =>
  threadsOf(pid).flatMap((task) => read(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number));

/** Lists a process and all its descendants. */
const tree = (pid) => [pid, ...childrenOf(pid).flatMap(tree)];

/** Microseconds in a hundredth of a second, the unit of /proc/stat. */
const tick = 10_000;

/** Processor time of a process and its descendants so far, in µs, without threads that have ended. */
export function cpuTime(pid) {
  return tree(pid).reduce(
    (sum, each) => sum + threadsOf(each).reduce((all, task) => all + threadTime(each, task), 0),
    0,
  );
}

/** Reads schedstat because it counts nanoseconds; /proc/PID/stat counts hundredths of a second. */
const threadTime = (pid, task) => Number(read(`/proc/${pid}/task/${task}/schedstat`).split(' ')[0] ?? 0) / 1000;

/** Time of a processor so far, in µs: `worked` for programs, `stolen` by the host. Time for interrupts is excluded. */
export function processorTimes(processor) {
  const [, times = ''] = read('/proc/stat').match(new RegExp(`^cpu${processor} (.*)$`, 'm')) ?? [];
  const [user = 0, nice = 0, system = 0, , , , , steal = 0] = times.split(' ').map(Number);
  return { worked: (user + nice + system) * tick, stolen: steal * tick };
}

/** Resident memory of a process and its descendants, in MiB. Shared pages count once. */
export function residentMemory(pid) {
  return tree(pid).reduce((sum, each) => {
    const [, kibibytes = 0] = read(`/proc/${each}/smaps_rollup`).match(/^Pss: +(\d+)/m) ?? [];
    return sum + Number(kibibytes) / 1024;
  }, 0);
}
