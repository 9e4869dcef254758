import { type ChildProcess, fork } from 'node:child_process';
import cluster from 'node:cluster';
import { exitCodes, numberVariable, processNumber } from '../lifecycle/exit.ts';
import type { Log } from '../observation/log.ts';
import type { Settings } from '../settings/settings.ts';

interface SupervisorOptions {
  readonly count: number;
  readonly log: Log;
  /** A listening socket of another process, which every process gets. */
  readonly descriptor: number | undefined;
  /** Seconds in which processes still accept connections after a stop request. */
  readonly drainDelay: number;
  /** Called when every process has been ready once. */
  readonly onReady: () => void;
  readonly onStop: () => void;
}

/** One of the processes: it is started again under its number. */
interface Place {
  readonly number: number;
  readonly backoff: ReturnType<typeof createBackoff>;
  worker?: ChildProcess | undefined;
  restart?: NodeJS.Timeout;
  isReady: boolean;
  wasReady: boolean;
  /** A reload was requested while the process could not take the signal. */
  needsReload: boolean;
}

/** Seconds from the end of the drain until a process that has not ended is killed: a stopped one takes no other signal. */
const killAfter = 10;

/** Exit statuses for a cause that a new process would share. */
const finalExitCodes: ReadonlySet<number> = new Set([exitCodes.config, exitCodes.unavailable]);

/**
 * Starts processes that share a listening socket and nothing else, and starts each again if it ends. Settles with the exit
 * status when all have ended after a signal, or if one cannot start at all.
 */
export function supervise(options: SupervisorOptions): Promise<number> {
  const { count, log, descriptor, drainDelay } = options;
  // Each process accepts by itself: a process that hangs takes no connection, and the backlog is served until all stop.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const places = Array.from({ length: count }, (_, index): Place => {
    return { number: index + 1, backoff: createBackoff(), isReady: false, wasReady: false, needsReload: false };
  });
  let isComplete = false;
  /** Exit status; `undefined` while processes are started again. */
  let status: number | undefined;
  let settle = (_status: number): void => {};

  const stop = (code: number): void => {
    if (status === undefined) setTimeout(killAll, (drainDelay + killAfter) * 1000, places, log);
    status ??= code;
    for (const { restart } of places) clearTimeout(restart);
    if (places.every(({ worker }) => worker === undefined)) settle(status);
  };

  const noteReady = (place: Place, message: object): void => {
    place.backoff.noteReady(performance.now() / 1000);
    place.isReady = true;
    place.wasReady = true;
    if (place.needsReload) place.worker?.kill('SIGHUP');
    place.needsReload = false;
    if (isComplete || !places.every(({ wasReady }) => wasReady)) return;
    isComplete = true;
    options.onReady();
    process.send?.(message);
  };

  const noteEnd = (place: Place, code: number | null, signal: string | null): void => {
    place.worker = undefined;
    place.isReady = false;
    if (status !== undefined) {
      if (code !== null && code !== 0 && status === exitCodes.ok) status = code;
      stop(status);
    } else if (!isComplete && code !== null && finalExitCodes.has(code)) {
      stop(code);
      // The others end as without a supervisor, and do not drain.
      for (const { worker } of places) if (worker?.connected === true) worker.disconnect();
    } else {
      const delay = place.backoff.next(performance.now() / 1000);
      log.write('error', 'worker_exited', { worker: place.number, code, signal, restart_in_ms: delay * 1000 });
      place.restart = setTimeout(start, delay * 1000, place);
    }
  };

  const start = (place: Place): void => {
    const worker = startProcess(place.number, descriptor);
    place.worker = worker;
    worker.once('exit', (code, signal) => place.worker === worker && noteEnd(place, code, signal));
    // A process that the system could not start has no exit.
    worker.on('error', () => worker.pid === undefined && place.worker === worker && noteEnd(place, null, null));
    worker.once('message', (message: object) => noteReady(place, message));
  };

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (status === undefined) options.onStop();
      for (const { worker } of places) worker?.kill(signal);
      stop(exitCodes.ok);
    });
  }
  process.on('SIGHUP', () => {
    for (const place of places) {
      if (place.isReady) place.worker?.kill('SIGHUP');
      else place.needsReload = true;
    }
  });
  return new Promise((resolve) => {
    settle = resolve;
    for (const place of places) start(place);
  });
}

function killAll(places: readonly Place[], log: Log): void {
  for (const { number, worker } of places) {
    if (worker?.kill('SIGKILL') === true) log.write('error', 'worker_killed', { worker: number });
  }
}

function startProcess(number: number, descriptor: number | undefined): ChildProcess {
  const variables = { [numberVariable]: String(number) };
  if (descriptor === undefined) return cluster.fork(variables).process;
  // Without `node:cluster`, which closes a socket of systemd with its last process.
  return fork(process.argv[1] ?? '', process.argv.slice(2), {
    stdio: ['inherit', 'inherit', 'inherit', descriptor, 'ipc'],
    env: { ...process.env, ...variables },
  });
}

/** Creates the delays of one process, in seconds: 1, 2, 4 … 30, and 1 again after it was ready for a minute. */
export function createBackoff() {
  let delay = 0;
  let readyAt = Number.POSITIVE_INFINITY;
  return {
    noteReady(now: number): void {
      readyAt = now;
    },
    next(now: number): number {
      delay = delay === 0 || now - readyAt >= 60 ? 1 : Math.min(delay * 2, 30);
      readyAt = Number.POSITIVE_INFINITY;
      return delay;
    },
  };
}

const streams: ReadonlySet<string> = new Set(['off', 'stdout', 'stderr']);

/** Returns the settings of this process. Ports and files of one process are numbered from the second process on. */
export function numberSettings(settings: Settings): Settings {
  const number = processNumber ?? 1;
  if (number === 1) return settings;
  const { adminPort, auditLog, consoleKeyFile } = settings;
  return {
    ...settings,
    adminPort: adminPort === 'off' || adminPort === 0 ? adminPort : adminPort + number - 1,
    auditLog: streams.has(auditLog) ? auditLog : `${auditLog}.${number}`,
    consoleKeyFile: consoleKeyFile === '' ? '' : `${consoleKeyFile}.${number}`,
  };
}
