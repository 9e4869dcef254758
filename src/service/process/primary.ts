import cluster, { type Worker } from 'node:cluster';
import type { Readiness } from '../app/admin.ts';
import type { Log } from '../observation/log.ts';
import { type MetricsSnapshot, mergeSnapshots } from '../observation/metrics.ts';
import { exitCodes } from './exit.ts';
import type { ToPrimary, ToWorker, WorkerReport } from './messages.ts';
import { answerWitness, type PrimaryReplay } from './replay-ipc.ts';

/** What the primary process runs with. */
export interface PrimaryOptions {
  readonly count: number;
  readonly log: Log;
  /** The replay memory that all workers share; absent where they share another store, or none. */
  readonly replay: PrimaryReplay | undefined;
  readonly onListening: (url: string) => void;
}

/** The workers, seen from the primary process. */
export interface Workers {
  /** Settles with an exit status when a worker cannot start at all, or after {@link Workers.stop}. */
  readonly ended: Promise<number>;
  readiness(): Promise<Readiness>;
  metrics(): Promise<MetricsSnapshot>;
  stop(): void;
}

const reportTimeout = 1000;
const longestBackoff = 30_000;
/** A worker that lived this long has not crashed at its start; in milliseconds. */
const settledAfter = 60_000;
/** A worker that ends so has a reason that a new one would share. */
const finalExitCodes: ReadonlySet<number> = new Set([exitCodes.config, exitCodes.unavailable]);

/** Starts the workers, and starts them again when they crash: after 1 s, then 2, 4 … 30 s. */
export function startWorkers({ count, log, replay, onListening }: PrimaryOptions): Workers {
  const pending = new Map<number, (report: WorkerReport) => void>();
  let nextId = 0;
  let crashes = 0;
  let stopping = false;
  let listening = false;
  let end = (_status: number) => {};
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });

  const receive = (worker: Worker, message: ToPrimary): void => {
    if (message.type === 'report') pending.get(message.id)?.(message);
    if (message.type === 'witness' && replay !== undefined) {
      send(worker, { type: 'witnessed', id: message.id, outcome: answerWitness(replay, message) });
    }
    if (message.type === 'share_replay' && replay !== undefined) {
      send(worker, { type: 'replay_shared', ...replay.shared });
    }
    if (message.type === 'listening' && !listening) {
      listening = true;
      onListening(message.url);
    }
  };

  const fork = (): void => {
    const worker = cluster.fork();
    const startedAt = performance.now();
    worker.on('message', (message: ToPrimary) => receive(worker, message));
    worker.on('exit', (code, signal) => {
      if (stopping) {
        if (liveWorkers().length === 0) end(exitCodes.ok);
        return;
      }
      if (finalExitCodes.has(code)) {
        stop();
        end(code);
        return;
      }
      crashes = performance.now() - startedAt > settledAfter ? 0 : crashes + 1;
      const delay = Math.min(1000 * 2 ** Math.max(crashes - 1, 0), longestBackoff);
      log.write('error', 'worker_exited', { worker: worker.id, code, signal, restart_in_ms: delay });
      setTimeout(() => {
        if (!stopping) fork();
      }, delay);
    });
  };

  const stop = (): void => {
    stopping = true;
    for (const worker of liveWorkers()) send(worker, { type: 'shutdown' });
    if (liveWorkers().length === 0) end(exitCodes.ok);
  };

  const report = (worker: Worker): Promise<WorkerReport | undefined> =>
    new Promise((resolve) => {
      const id = nextId++;
      const finish = (answer: WorkerReport | undefined): void => {
        clearTimeout(timer);
        pending.delete(id);
        resolve(answer);
      };
      const timer = setTimeout(() => finish(undefined), reportTimeout);
      pending.set(id, finish);
      send(worker, { type: 'report', id });
    });

  const reports = async (): Promise<readonly WorkerReport[]> =>
    (await Promise.all(liveWorkers().map(report))).filter((item) => item !== undefined);

  for (let i = 0; i < count; i++) fork();
  return {
    ended,
    stop,
    metrics: async () => mergeSnapshots((await reports()).map(({ metrics }) => metrics)),
    readiness: async () => mergeReadiness(await reports(), stopping),
  };
}

function liveWorkers(): readonly Worker[] {
  // One that has exited stays in the list until its channel has closed too, and either can come first.
  const known = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  return known.filter((worker) => !worker.isDead());
}

function send(worker: Worker, message: ToWorker): void {
  // A worker that is just ending has no channel any more; its exit is handled by itself.
  if (worker.isConnected()) worker.send(message, () => {});
}

/** One worker that is ready can serve; what the others lack is shown. */
function mergeReadiness(reports: readonly WorkerReport[], stopping: boolean): Readiness {
  if (stopping) return { ready: false, checks: { shutdown: 'in progress' } };
  const ready = reports.filter(({ readiness }) => readiness.ready);
  const [shown] = ready.length > 0 ? ready : reports;
  return {
    ready: ready.length > 0,
    checks: { ...shown?.readiness.checks, workers: `${ready.length} of ${reports.length} ready` },
  };
}
