import cluster, { type Worker } from 'node:cluster';
import type { Readiness } from '../admin/admin.ts';
import { exitCodes } from '../lifecycle/exit.ts';
import type { Log } from '../observation/log.ts';
import type { MetricsSnapshot } from '../observation/metrics.ts';
import { createWorkerMetrics, describeWorkers } from '../observation/metrics.ts';
import {
  createChannel,
  type PrimaryFunctions,
  type WorkerChannel,
  type WorkerFunctions,
  type WorkerReport,
} from './channel.ts';
import type { HandOver, Taker } from './hand-over.ts';

export interface PrimaryOptions {
  readonly count: number;
  readonly log: Log;
  readonly handOver: HandOver;
  readonly onReady: () => void;
  /** Returns what a worker may call, in addition to the functions of its lifecycle. */
  readonly provide: (channel: WorkerChannel) => Partial<PrimaryFunctions>;
}

export interface Workers {
  /** Settles with an exit status when a worker cannot start at all, or after {@link Workers.stop}. */
  readonly ended: Promise<number>;
  readiness(): Promise<Readiness>;
  metrics(): Promise<MetricsSnapshot>;
  /** Calls a function of every worker. */
  readonly callAll: WorkerChannel['call'];
  /** Reports the workers as not ready. They still take connections. */
  drain(): void;
  /** Ends all workers after their last responses. Kills those that are left after the grace. */
  stop(graceSeconds: number): void;
}

interface Member extends Taker {
  readonly worker: Worker;
  readonly startedAt: number;
  ready: boolean;
  missedPings: number;
}

const reportTimeout = 1000;
const longestBackoff = 30_000;
/** Milliseconds after which the end of a worker is not a failed start. */
const settledAfter = 60_000;
/** Milliseconds between pings, and pings that a worker may miss. */
const pingInterval = 1000;
const maxMissedPings = { starting: 30, ready: 5 } as const;
/** Milliseconds after which a signal to every process has also reached this one. */
const signalDelay = 250;
/** Exit status for a cause that a new worker would share. */
const finalExitCodes: ReadonlySet<number> = new Set([exitCodes.config, exitCodes.unavailable]);

/** Starts the workers, and starts them again when they crash: after 1 s, then 2, 4 … 30 s. */
export function startWorkers({ count, log, handOver, onReady, provide }: PrimaryOptions): Workers {
  const members = new Set<Member>();
  const workerMetrics = createWorkerMetrics();
  let crashes = 0;
  let restarts = 0;
  let state: 'running' | 'draining' | 'stopping' = 'running';
  let announced = false;
  let end = (_status: number) => {};
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });

  const welcome = (member: Member): void => {
    if (state === 'stopping') return;
    if (state === 'draining') member.channel.call('drain');
    member.ready = true;
    handOver.add(member);
    if (!announced) onReady();
    announced = true;
  };

  const dismiss = (member: Member): void => {
    member.ready = false;
    handOver.remove(member);
    member.channel.call('shutdown');
  };

  const fork = (): void => {
    const member = openMember(cluster.fork());
    const { worker, channel } = member;
    members.add(member);
    channel.provide({
      ...provide(channel),
      counted: (metrics) => workerMetrics.keep(worker.id, metrics),
      ready: () => welcome(member),
      // If the signal has reached this process too, the worker ends with all others, in order.
      leaving: () => void setTimeout(() => state === 'running' && dismiss(member), signalDelay),
    });
    worker.on('exit', (code, signal) => {
      members.delete(member);
      workerMetrics.retire(worker.id);
      channel.close();
      if (state === 'stopping') {
        if (members.size === 0) end(exitCodes.ok);
        return;
      }
      // After startup a file may be invalid for a moment, while other workers serve with the last valid one.
      if (!announced && finalExitCodes.has(code)) {
        stop(0);
        end(code);
        return;
      }
      crashes = performance.now() - member.startedAt > settledAfter ? 0 : crashes + 1;
      const delay = Math.min(1000 * 2 ** Math.max(crashes - 1, 0), longestBackoff);
      log.write('error', 'worker_exited', { worker: worker.id, code, signal, restart_in_ms: delay });
      setTimeout(() => {
        if (state === 'stopping') return;
        restarts++;
        fork();
      }, delay);
    });
  };

  const pinging = setInterval(() => pingAll(members, log), pingInterval);

  const stop = (graceSeconds: number): void => {
    state = 'stopping';
    for (const member of members) dismiss(member);
    if (members.size === 0) end(exitCodes.ok);
    setTimeout(() => {
      for (const { worker } of members) worker.process.kill('SIGKILL');
    }, graceSeconds * 1000).unref();
  };

  /** Reports of the workers that take connections; `undefined` for a worker that does not respond. */
  const readReports = async (): Promise<readonly (WorkerReport | undefined)[]> => {
    const read = async (member: Member) => {
      const report = await member.channel.request('report', reportTimeout);
      if (report !== undefined) workerMetrics.keep(member.worker.id, report.metrics);
      return { member, report };
    };
    const received = await Promise.all([...members].filter(({ ready }) => ready).map(read));
    // Without the workers that have ended meanwhile.
    return received.filter(({ member }) => member.ready && members.has(member)).map(({ report }) => report);
  };

  const callAll: Workers['callAll'] = (name, ...sent) => {
    for (const { channel } of members) channel.call(name, ...sent);
  };

  for (let i = 0; i < count; i++) fork();
  return {
    ended: ended.finally(() => clearInterval(pinging)),
    callAll,
    stop,
    drain() {
      state = 'draining';
      callAll('drain');
    },
    metrics: async () => {
      await readReports();
      return [...workerMetrics.read(), ...describeWorkers(members.size, restarts)];
    },
    readiness: async () => mergeReadiness(await readReports(), { stopping: state !== 'running', count }),
  };
}

function openMember(worker: Worker): Member {
  const channel = createChannel<PrimaryFunctions, WorkerFunctions>((message, socket) => {
    // A worker that ends has no channel; its exit is handled separately.
    if (worker.isConnected()) worker.send(message, socket, { keepOpen: true }, () => {});
  });
  const member: Member = {
    ...{ worker, channel, startedAt: performance.now(), ready: false, missedPings: 0 },
    // The worker has not responded to a ping when the next one is due.
    isSilent: () => member.missedPings > 1,
  };
  worker.on('message', (message) => {
    member.missedPings = 0;
    channel.receive(message);
  });
  return member;
}

/** Kills workers that hang, because they hold connections. */
function pingAll(members: Iterable<Member>, log: Log): void {
  for (const { worker, ready, missedPings } of members) {
    if (missedPings < (ready ? maxMissedPings.ready : maxMissedPings.starting)) continue;
    log.write('error', 'worker_silent', { worker: worker.id, seconds: (missedPings * pingInterval) / 1000 });
    worker.process.kill('SIGKILL');
  }
  for (const member of members) {
    // The next ping follows a response: unread messages of a worker that hangs would pile up.
    if (member.missedPings === 0) member.channel.call('alive');
    member.missedPings++;
  }
}

/** A client cannot choose its worker, so each must be ready. Shows the checks of the first one that is not ready, or else degraded. `count`: configured workers. */
function mergeReadiness(
  reports: readonly (WorkerReport | undefined)[],
  { stopping, count }: { readonly stopping: boolean; readonly count: number },
): Readiness {
  if (stopping) return { ready: false, checks: { shutdown: 'in progress' } };
  const ready = reports.filter((report) => report?.readiness.ready === true);
  const shown =
    reports.find((report) => report?.readiness.ready === false) ??
    ready.find((report) => report?.readiness.degraded !== undefined) ??
    ready[0];
  return {
    ...shown?.readiness,
    ready: ready.length > 0 && ready.length === reports.length,
    checks: { ...shown?.readiness.checks, workers: `${ready.length} of ${count} ready` },
  };
}
