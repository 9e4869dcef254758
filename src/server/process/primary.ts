import cluster, { type Worker } from 'node:cluster';
import type { Readiness } from '../admin/admin.ts';
import type { DecisionBatch } from '../console/wire.ts';
import type { KeyOwner } from '../keys/open-keys.ts';
import { nameKeys } from '../keys/service-keys.ts';
import { exitCodes } from '../lifecycle/exit.ts';
import type { Log } from '../observation/log.ts';
import type { MetricsSnapshot } from '../observation/metrics.ts';
import { createWorkerMetrics, describeWorkers } from '../observation/worker-metrics.ts';
import type { HandOver } from './hand-over.ts';
import { createPendingRequests, type ToPrimary, type ToWorker, type WorkerReport } from './messages.ts';
import { type PrimaryReplay, witnessProof } from './replay-ipc.ts';
import type { RevocationRelay } from './revocation-ipc.ts';

export interface PrimaryOptions {
  readonly count: number;
  readonly log: Log;
  /** The replay memory that all workers share; absent if they use another store, or none. */
  readonly replay: PrimaryReplay | undefined;
  /** Absent if no source of revocations is configured. */
  readonly relay?: RevocationRelay | undefined;
  readonly keyOwner: KeyOwner;
  readonly handOver: HandOver;
  readonly onReady: () => void;
  /** Takes the decisions of workers, for the console; absent if it is off. */
  readonly onDecisions?: ((batch: DecisionBatch) => void) | undefined;
}

export interface Workers {
  /** Settles with an exit status when a worker cannot start at all, or after {@link Workers.stop}. */
  readonly ended: Promise<number>;
  readiness(): Promise<Readiness>;
  metrics(): Promise<MetricsSnapshot>;
  reload(): void;
  /** Reports the workers as not ready. They still take connections. */
  drain(): void;
  /** Ends all workers after their last responses. Kills those that are left after the grace. */
  stop(graceSeconds: number): void;
}

interface Member {
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
export function startWorkers(options: PrimaryOptions): Workers {
  const { count, log, replay, relay, keyOwner, handOver, onReady, onDecisions } = options;
  const members = new Map<number, Member>();
  const pending = createPendingRequests<WorkerReport>(reportTimeout);
  const workerMetrics = createWorkerMetrics();
  let crashes = 0;
  let restarts = 0;
  let state: 'running' | 'draining' | 'stopping' = 'running';
  let announced = false;
  let end = (_status: number) => {};
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });

  const receive = (member: Member, message: ToPrimary): void => {
    const { worker } = member;
    member.missedPings = 0;
    handOver.setSilent(worker, false);
    if (message.type === 'taken') handOver.confirm(worker, message.id);
    if (message.type === 'counted') workerMetrics.keep(worker.id, message.metrics);
    if (message.type === 'report') {
      workerMetrics.keep(worker.id, message.metrics);
      pending.settle(message.id, message);
    }
    if (message.type === 'witness' && replay !== undefined) {
      const outcomes = message.proofs.map((proof) => witnessProof(replay, proof));
      send(worker, { type: 'witnessed', id: message.id, outcomes });
    }
    if (message.type === 'share_replay' && replay !== undefined) {
      send(worker, { type: 'replay_shared', ...replay.shared });
    }
    if (message.type === 'keys') void sendKeys(worker, message, keyOwner);
    relay?.receive(worker.id, message, (response) => send(worker, response));
    if (message.type === 'decisions') onDecisions?.(message.batch);
    if (message.type === 'ready') welcome(member);
    if (message.type === 'leaving') {
      // If the signal has reached this process too, the worker ends with all others, in order.
      setTimeout(() => state === 'running' && dismiss(member), signalDelay);
    }
  };

  const welcome = (member: Member): void => {
    if (state === 'stopping') return;
    if (state === 'draining') send(member.worker, { type: 'drain' });
    member.ready = true;
    handOver.add(member.worker);
    if (!announced) onReady();
    announced = true;
  };

  const dismiss = (member: Member): void => {
    member.ready = false;
    handOver.remove(member.worker);
    send(member.worker, { type: 'shutdown' });
  };

  const fork = (): void => {
    const worker = cluster.fork();
    const member: Member = { worker, startedAt: performance.now(), ready: false, missedPings: 0 };
    members.set(worker.id, member);
    worker.on('message', (message: ToPrimary) => receive(member, message));
    worker.on('exit', (code, signal) => {
      members.delete(worker.id);
      workerMetrics.retire(worker.id);
      relay?.remove(worker.id);
      handOver.remove(worker);
      handOver.reassign(worker);
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

  /** Kills workers that hang, because they hold connections. */
  const pingWorkers = (): void => {
    for (const { worker, ready, missedPings } of members.values()) {
      if (missedPings < (ready ? maxMissedPings.ready : maxMissedPings.starting)) continue;
      log.write('error', 'worker_silent', { worker: worker.id, seconds: (missedPings * pingInterval) / 1000 });
      worker.process.kill('SIGKILL');
    }
    for (const member of members.values()) {
      if (member.missedPings > 0) handOver.setSilent(member.worker, true);
      // The next ping follows a response: unread messages of a worker that hangs would pile up.
      if (member.missedPings === 0) send(member.worker, { type: 'alive' });
      member.missedPings++;
    }
  };
  const pinging = setInterval(pingWorkers, pingInterval);

  const stop = (graceSeconds: number): void => {
    state = 'stopping';
    for (const member of members.values()) dismiss(member);
    if (members.size === 0) end(exitCodes.ok);
    setTimeout(() => {
      for (const { worker } of members.values()) worker.process.kill('SIGKILL');
    }, graceSeconds * 1000).unref();
  };

  const report = async ({ worker }: Member): Promise<WorkerReport | undefined> => {
    let end = (): void => {};
    const response = pending.request((id) => {
      end = () => pending.settle(id, undefined);
      worker.once('exit', end);
      send(worker, { type: 'report', id });
    });
    return response.finally(() => worker.off('exit', end));
  };

  /** Reports of the workers that take connections; `undefined` for a worker that does not respond. */
  const reports = async (): Promise<readonly (WorkerReport | undefined)[]> => {
    const taking = [...members.values()].filter(({ ready }) => ready);
    const received = await Promise.all(taking.map(report));
    // Without the workers that have ended meanwhile.
    return received.filter((_report, index) => isTaking(taking[index]));
  };

  const isTaking = (member: Member | undefined): boolean => member?.ready === true && members.has(member.worker.id);

  keyOwner.onNews((name, news) => {
    for (const { worker } of members.values()) send(worker, { type: 'keys', name, news, throttled: false });
  });
  for (let i = 0; i < count; i++) fork();
  return {
    ended: ended.finally(() => clearInterval(pinging)),
    stop,
    drain() {
      state = 'draining';
      for (const { worker } of members.values()) send(worker, { type: 'drain' });
    },
    reload() {
      for (const { worker } of members.values()) send(worker, { type: 'reload' });
    },
    metrics: async () => {
      await reports();
      return [...workerMetrics.read(), ...describeWorkers(members.size, restarts)];
    },
    readiness: async () => mergeReadiness(await reports(), { stopping: state !== 'running', count }),
  };
}

/** The primary fetches the keys, so that a new worker has them, and a flood costs the provider as much as one process. */
async function sendKeys(
  worker: Worker,
  message: ToPrimary & { readonly type: 'keys' },
  owner: KeyOwner,
): Promise<void> {
  const { id, issuer, place, action, fetches } = message;
  const name = nameKeys(issuer, place);
  const keys = await owner.open(issuer, place);
  // Newer keys, which another worker has requested, need no other fetch.
  const isNewer = (owner.news(name)?.fetches ?? 0) > fetches;
  const fetch = action === 'follow' || isNewer ? undefined : keys.refetch();
  await fetch;
  const throttled = action === 'fetch' && !isNewer && fetch === undefined;
  send(worker, { type: 'keys', id, name, throttled, news: throttled ? undefined : owner.news(name) });
}

function send(worker: Worker, message: ToWorker): void {
  // A worker that ends has no channel; its exit is handled separately.
  if (worker.isConnected()) worker.send(message, () => {});
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
