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
import type { ToPrimary, ToWorker, WorkerReport } from './messages.ts';
import { answerWitness, type PrimaryReplay } from './replay-ipc.ts';

/** What the primary process runs with. */
export interface PrimaryOptions {
  readonly count: number;
  readonly log: Log;
  /** The replay memory that all workers share; absent where they share another store, or none. */
  readonly replay: PrimaryReplay | undefined;
  readonly keyOwner: KeyOwner;
  readonly handOver: HandOver;
  /** Called when the first worker can take connections. */
  readonly onReady: () => void;
  /** Takes the decisions of workers, for the console; absent if it is off. */
  readonly onDecisions?: ((batch: DecisionBatch) => void) | undefined;
}

/** The workers, seen from the primary process. */
export interface Workers {
  /** Settles with an exit status when a worker cannot start at all, or after {@link Workers.stop}. */
  readonly ended: Promise<number>;
  readiness(): Promise<Readiness>;
  metrics(): Promise<MetricsSnapshot>;
  reload(): void;
  /** Not ready from now on; connections are still taken. */
  drain(): void;
  /** Ends all workers once they have answered; those that have not ended after so many seconds are killed. */
  stop(graceSeconds: number): void;
}

/** One worker, as the primary process knows it. */
interface Member {
  readonly worker: Worker;
  readonly startedAt: number;
  ready: boolean;
  /** Questions in a row that it has left unanswered. */
  unanswered: number;
}

const reportTimeout = 1000;
const longestBackoff = 30_000;
/** A worker that lived this long has not crashed at its start; in milliseconds. */
const settledAfter = 60_000;
/** Milliseconds between questions whether a worker is alive, and how many it may leave unanswered. */
const aliveInterval = 1000;
const maxUnanswered = { starting: 30, ready: 5 } as const;
/** Milliseconds until a signal that reaches every process has surely reached this one too. */
const signalDelay = 250;
/** A worker that ends so has a reason that a new one would share. */
const finalExitCodes: ReadonlySet<number> = new Set([exitCodes.config, exitCodes.unavailable]);

/** Starts the workers, and starts them again when they crash: after 1 s, then 2, 4 … 30 s. */
export function startWorkers(options: PrimaryOptions): Workers {
  const { count, log, replay, keyOwner, handOver, onReady, onDecisions } = options;
  const members = new Map<number, Member>();
  const pending = new Map<number, (report: WorkerReport) => void>();
  let nextId = 0;
  const counted = createWorkerMetrics();
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
    member.unanswered = 0;
    handOver.setSilent(worker, false);
    if (message.type === 'taken') handOver.confirm(worker, message.id);
    if (message.type === 'counted') counted.keep(worker.id, message.metrics);
    if (message.type === 'report') {
      counted.keep(worker.id, message.metrics);
      pending.get(message.id)?.(message);
    }
    if (message.type === 'witness' && replay !== undefined) {
      const outcomes = message.proofs.map((proof) => answerWitness(replay, proof));
      send(worker, { type: 'witnessed', id: message.id, outcomes });
    }
    if (message.type === 'share_replay' && replay !== undefined) {
      send(worker, { type: 'replay_shared', ...replay.shared });
    }
    if (message.type === 'keys') void answerKeys(worker, message, keyOwner);
    if (message.type === 'decisions') onDecisions?.(message.batch);
    if (message.type === 'ready') welcome(member);
    if (message.type === 'leaving') setTimeout(() => leave(member), signalDelay);
  };

  const welcome = (member: Member): void => {
    if (state === 'stopping') return;
    if (state === 'draining') send(member.worker, { type: 'drain' });
    member.ready = true;
    handOver.add(member.worker);
    if (!announced) onReady();
    announced = true;
  };

  /** A signal to a worker. If it reached this process too, the worker ends with all others, in order. */
  const leave = (member: Member): void => {
    if (state === 'running') dismiss(member);
  };

  const dismiss = (member: Member): void => {
    member.ready = false;
    handOver.remove(member.worker);
    send(member.worker, { type: 'shutdown' });
  };

  const fork = (): void => {
    const worker = cluster.fork();
    const member: Member = { worker, startedAt: performance.now(), ready: false, unanswered: 0 };
    members.set(worker.id, member);
    worker.on('message', (message: ToPrimary) => receive(member, message));
    worker.on('exit', (code, signal) => {
      members.delete(worker.id);
      counted.retire(worker.id);
      handOver.remove(worker);
      handOver.bury(worker);
      if (state === 'stopping') {
        if (members.size === 0) end(exitCodes.ok);
        return;
      }
      // Later than at the start, a file may be bad for a moment only, while another worker serves with what it had.
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

  /** A worker that does not answer holds connections, and the calls on them. */
  const askWhoIsAlive = (): void => {
    for (const { worker, ready, unanswered } of members.values()) {
      if (unanswered < (ready ? maxUnanswered.ready : maxUnanswered.starting)) continue;
      log.write('error', 'worker_silent', { worker: worker.id, seconds: (unanswered * aliveInterval) / 1000 });
      worker.process.kill('SIGKILL');
    }
    for (const member of members.values()) {
      if (member.unanswered > 0) handOver.setSilent(member.worker, true);
      // A question only after an answer: what a worker that stands still has not read would grow.
      if (member.unanswered === 0) send(member.worker, { type: 'alive' });
      member.unanswered++;
    }
  };
  const asking = setInterval(askWhoIsAlive, aliveInterval);

  const stop = (graceSeconds: number): void => {
    state = 'stopping';
    for (const member of members.values()) dismiss(member);
    if (members.size === 0) end(exitCodes.ok);
    setTimeout(() => {
      for (const { worker } of members.values()) worker.process.kill('SIGKILL');
    }, graceSeconds * 1000).unref();
  };

  const report = ({ worker }: Member): Promise<WorkerReport | undefined> =>
    new Promise((resolve) => {
      const id = nextId++;
      const finish = (answer: WorkerReport | undefined): void => {
        clearTimeout(timer);
        worker.off('exit', leaveUnanswered);
        pending.delete(id);
        resolve(answer);
      };
      const leaveUnanswered = (): void => finish(undefined);
      const timer = setTimeout(leaveUnanswered, reportTimeout);
      worker.once('exit', leaveUnanswered);
      pending.set(id, finish);
      send(worker, { type: 'report', id });
    });

  /** Of the workers that take connections; `undefined` for one that does not answer. */
  const reports = async (): Promise<readonly (WorkerReport | undefined)[]> => {
    const asked = [...members.values()].filter(({ ready }) => ready);
    const answers = await Promise.all(asked.map(report));
    // One that has ended meanwhile, or was told to, takes no connection any more.
    return answers.filter((_answer, index) => isTaking(asked[index]));
  };

  const isTaking = (member: Member | undefined): boolean => member?.ready === true && members.has(member.worker.id);

  keyOwner.onNews((name, news) => {
    for (const { worker } of members.values()) send(worker, { type: 'keys', name, news, throttled: false });
  });
  for (let i = 0; i < count; i++) fork();
  return {
    ended: ended.finally(() => clearInterval(asking)),
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
      return [...counted.read(), ...describeWorkers(members.size, restarts)];
    },
    readiness: async () => mergeReadiness(await reports(), { stopping: state !== 'running', count }),
  };
}

/** The primary fetches the keys, so that a new worker has them, and a flood costs the provider no more than one process. */
async function answerKeys(
  worker: Worker,
  message: ToPrimary & { readonly type: 'keys' },
  owner: KeyOwner,
): Promise<void> {
  const { id, issuer, place, wish, fetches } = message;
  const name = nameKeys(issuer, place);
  const keys = await owner.open(issuer, place);
  // What another worker has just asked for is on its way: it is no reason for one more fetch.
  const isNewer = (owner.news(name)?.fetches ?? 0) > fetches;
  const fetch = wish === 'follow' || isNewer ? undefined : keys.refetch();
  await fetch;
  const throttled = wish === 'fetch' && !isNewer && fetch === undefined;
  send(worker, { type: 'keys', id, name, throttled, news: throttled ? undefined : owner.news(name) });
}

function send(worker: Worker, message: ToWorker): void {
  // A worker that is just ending has no channel any more; its exit is handled by itself.
  if (worker.isConnected()) worker.send(message, () => {});
}

interface ReadinessFacts {
  readonly stopping: boolean;
  /** Workers that there should be. */
  readonly count: number;
}

/** A client cannot choose its worker: each that takes connections must be ready. What the first that is not lacks is shown. */
function mergeReadiness(
  reports: readonly (WorkerReport | undefined)[],
  { stopping, count }: ReadinessFacts,
): Readiness {
  if (stopping) return { ready: false, checks: { shutdown: 'in progress' } };
  const ready = reports.filter((report) => report?.readiness.ready === true);
  const shown = reports.find((report) => report?.readiness.ready === false) ?? ready[0];
  return {
    ...shown?.readiness,
    ready: ready.length > 0 && ready.length === reports.length,
    checks: { ...shown?.readiness.checks, workers: `${ready.length} of ${count} ready` },
  };
}
