// The service has the first processor for itself where there are two and `taskset` is installed; the load has the rest.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const taskset = '/usr/bin/taskset';
/** Of the machine; a process that is kept on some of them sees only those. */
export const processors = availableParallelism();

/** Whether service and load are kept on processors of their own. */
export const pinned = processors > 1 && existsSync(taskset);

const lists = { service: '0', load: processors > 2 ? `1-${processors - 1}` : '1' };

/** The command line that runs `words` as `part`: `service` or `load`. */
export function pin(part, words) {
  return pinned ? [taskset, '-c', lists[part], ...words] : words;
}

/** Moves this process to where the load is: the provider, and what reads the service's log, are here. */
export function pinThis() {
  if (pinned) execFileSync(taskset, ['-a', '-p', '-c', lists.load, `${process.pid}`], { stdio: 'ignore' });
}
