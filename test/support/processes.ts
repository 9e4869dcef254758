import { readdirSync, readFileSync } from 'node:fs';

/** Processes whose parent is this one; those that have ended and were not collected do not count. */
export function findChildren(pid: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      const [state, parent] = readState(name);
      return parent === String(pid) && state !== 'Z';
    })
    .map(Number);
}

/** State and parent (proc(5), fields 3 and 4), which stand behind a name that may hold anything. */
function readState(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
  } catch {
    return []; // it has just ended
  }
}

/** Whether a process has ended. */
export const isGone = (pid: number): boolean => {
  const [state] = readState(String(pid));
  return state === undefined || state === 'Z';
};
