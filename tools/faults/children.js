// Every process that a run starts: each is ended by its own id, also when the run itself ends early.
import { spawn } from 'node:child_process';

const living = new Set();

process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});
for (const [signal, status] of /** @type {const} */ ([
  ['SIGINT', 130],
  ['SIGTERM', 143],
])) {
  process.once(signal, () => process.exit(status));
}

/** Starts a process that does not outlive this one; `ended` settles with its exit code, or the name of the signal. */
export function startChild([command, ...args], options) {
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
  return { child, ended };
}

/** Asks a process to end, and ends it after 12 s; the exit code, or the name of the signal. */
export async function endChild({ child, ended }) {
  child.kill('SIGTERM');
  const last = setTimeout(() => child.kill('SIGKILL'), 12_000);
  const status = await ended;
  clearTimeout(last);
  return status;
}

/** Asks a process by message and resolves with its answer; rejects where the process ends instead. */
export function createAsking({ child, ended }) {
  const waiting = new Map();
  let next = 0;
  child.on('message', ({ id, answer }) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  const gone = ended.then((status) => Promise.reject(new Error(`a helper process ended with ${status}`)));
  gone.catch(() => {});
  return (command, detail) => {
    const id = next++;
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    child.send({ id, command, detail });
    return Promise.race([answer, gone]);
  };
}
