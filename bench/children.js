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

/** Linux counts in hundredths of a second for every program. */
const tick = 10_000;

function endProcess(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}

/** Processor time that a process and those below it have used so far, in µs. */
export function cpuTime(pid) {
  return tree(pid).reduce((sum, each) => {
    // Behind the name, which may hold spaces: utime and stime are fields 14 and 15 of all.
    const fields = (read(`/proc/${each}/stat`).split(') ').at(-1) ?? '').split(' ');
    return sum + (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * tick;
  }, 0);
}

/** Time that a processor has worked for programs so far, in µs, with what the host took from it; not for interrupts. */
export function processorTime(processor) {
  const [, times = ''] = read('/proc/stat').match(new RegExp(`^cpu${processor} (.*)$`, 'm')) ?? [];
  const [user, nice, system, , , , , steal] = times.split(' ').map(Number);
  return (user + nice + system + steal) * tick;
}

/** Resident memory of a process and those below it, in MiB; what they share counts once, spread over them. */
export function residentMemory(pid) {
  return tree(pid).reduce((sum, each) => {
    const [, kibibytes = 0] = read(`/proc/${each}/smaps_rollup`).match(/^Pss: +(\d+)/m) ?? [];
    return sum + Number(kibibytes) / 1024;
  }, 0);
}
