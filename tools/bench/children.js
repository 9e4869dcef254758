// Every process that a run starts: pinned to a processor, measured with its children, ended by its own id.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** The processor of the servers, and the one of all that loads them. */
export const processors = { server: '0', load: '1' };

const living = new Set();

process.once('exit', () => {
  for (const pid of [...living].flatMap((child) => tree(child.pid))) endProcess(pid);
});
for (const [signal, status] of /** @type {const} */ ([
  ['SIGINT', 130],
  ['SIGTERM', 143],
])) {
  process.once(signal, () => process.exit(status));
}

/** Starts a process that does not outlive this one; `processor` is a list as `taskset` takes it. */
export function startChild(words, { processor, ...options }) {
  const [command, ...args] = processor === undefined ? words : ['taskset', '-c', processor, ...words];
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
  return { pid: child.pid, child, ended };
}

/** Asks a process to end, and ends it after 3 s; its exit code, or the name of the signal. */
export async function endChild({ child, ended }) {
  child.kill('SIGTERM');
  const last = setTimeout(() => child.kill('SIGKILL'), 3000);
  const status = await ended.catch(() => undefined);
  clearTimeout(last);
  return status;
}

/** The ids of a process and of all below it. */
function tree(pid) {
  let below = [];
  try {
    below = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return []; // it has ended
  }
  return [pid, ...below.flatMap(tree)];
}

const read = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has ended between two looks
  }
};

/** In /proc/stat, Linux counts in hundredths of a second. */
const tick = 10_000;

function endProcess(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}

/** Processor time that a process and those below it have used so far, in µs; that of a thread that has ended is left out. */
export function cpuTime(pid) {
  return tree(pid).reduce(
    (sum, each) => sum + threadsOf(each).reduce((all, task) => all + threadTime(each, task), 0),
    0,
  );
}

function threadsOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return []; // it has ended
  }
}

/** To the nanosecond: what /proc/PID/stat says comes in hundredths of a second. */
const threadTime = (pid, task) => Number(read(`/proc/${pid}/task/${task}/schedstat`).split(' ')[0] ?? 0) / 1000;

/**
 * Time that a processor has worked so far, in µs: `worked` for programs, `stolen` while the host had it elsewhere. What it
 * did for interrupts is in neither.
 */
export function processorTimes(processor) {
  const [, times = ''] = read('/proc/stat').match(new RegExp(`^cpu${processor} (.*)$`, 'm')) ?? [];
  const [user = 0, nice = 0, system = 0, , , , , steal = 0] = times.split(' ').map(Number);
  return { worked: (user + nice + system) * tick, stolen: steal * tick };
}

/** Resident memory of a process and those below it, in MiB; what they share counts once, spread over them. */
export function residentMemory(pid) {
  return tree(pid).reduce((sum, each) => {
    const [, kibibytes = 0] = read(`/proc/${each}/smaps_rollup`).match(/^Pss: +(\d+)/m) ?? [];
    return sum + Number(kibibytes) / 1024;
  }, 0);
}
