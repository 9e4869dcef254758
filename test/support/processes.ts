import { readdirSync, readFileSync } from 'node:fs';

/** Lists the children of this process, without zombies. */
export function findChildren(pid: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      const [state, parent] = readState(name);
      return parent === String(pid) && state !== 'Z';
    })
    .map(Number);
}

/** Reads state and parent (proc(5), fields 3 and 4), after a name with arbitrary characters. */
function readState(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
  } catch {
    return []; // it has just ended
  }
}

/** Reports whether a process has ended. */
export const isGone = (pid: number): boolean => {
  const [state] = readState(String(pid));
  return state === undefined || state === 'Z';
};
