// The handle on the process that holds thousands of connections.
import { execFileSync } from 'node:child_process';
import { startHelper } from '../shared/processes.js';

/** Other open files of a process. */
const spare = 500;

/** So many connections as were wished for, or as one process may have open. */
export function limitConnections(wished) {
  const limit = execFileSync('/bin/sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim();
  return limit === 'unlimited' ? wished : Math.min(wished, Number(limit) - spare);
}

/**
 * Starts the process, and ends it with its connections after `play`. `open` opens `count` connections of the `style`: `idle`, `slow`,
 * `pipelining`, or `waiting` after `bytes` of a head of such a `line`.
 */
export async function withCrowd(play) {
  const { ask, end } = startHelper(new URL('crowd-process.js', import.meta.url));
  try {
    return await play({ open: (options) => ask('open', options), state: () => ask('state') });
  } finally {
    await end();
  }
}
