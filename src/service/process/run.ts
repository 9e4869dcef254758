import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { errorBodyFormats } from '../../refusal/error-body.ts';
import { type AdminSources, createAdmin } from '../app/admin.ts';
import type { Log } from '../observation/log.ts';
import { createMetrics, formatMetrics, type Metrics } from '../observation/metrics.ts';
import type { Settings } from '../settings/settings.ts';
import { exitCodes, StartFailure } from './exit.ts';
import { type Listener, listen } from './listener.ts';
import type { ToPrimary, ToWorker } from './messages.ts';
import { prepareDenyLists } from './open-deny-list.ts';
import { openReplay, openSharedReplay } from './open-replay.ts';
import { startWorkers } from './primary.ts';
import { askForReplay, createPrimaryReplayStore, type PrimaryChannel } from './replay-ipc.ts';
import { createService, type Service } from './service.ts';
import { type Shutdown, watchSignals } from './shutdown.ts';

/** What a process of the service runs with. */
export interface RunOptions {
  readonly settings: Settings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

/** Seconds for what was accepted; the process ends within 10. */
const grace = 9;

/** Runs the service until it is asked to stop; the exit status. Rejects with `StartFailure`. */
export async function run(options: RunOptions): Promise<number> {
  const { workers } = options.settings;
  const count = workers === 'auto' ? availableParallelism() : workers;
  if (cluster.isWorker) return runWorker(options);
  return count > 1 ? runPrimary(options, count) : runSingle(options);
}

async function runSingle(options: RunOptions): Promise<number> {
  const shutdown = watchSignals();
  const metrics = createMetrics();
  const replay = await openReplay({ ...options, metrics });
  const service = await createService({ ...options, metrics, replay: replay.store });
  const admin = await openAdmin(options.settings, {
    readiness: service.readiness,
    metrics: () => formatMetrics(metrics.snapshot()),
  });
  const api = await openApi(options.settings, service);
  announce(options.log, api.url, admin?.url);
  service.fetchKeys();
  await shutdown.requested;
  await stopService(service, api, options.log);
  await admin?.close(0);
  await replay.close();
  return exitCodes.ok;
}

async function runPrimary({ settings, log }: RunOptions, count: number): Promise<number> {
  const shutdown = watchSignals();
  if (settings.denyList !== '') prepareDenyLists(settings.denyList);
  const metrics = createMetrics();
  // A remote store is shared by itself; the one in memory lives here, so that workers share it too.
  const replay = settings.replayStore === 'memory' ? openSharedReplay(metrics) : undefined;
  let adminUrl: string | undefined;
  const workers = startWorkers({
    count,
    log,
    replay,
    onListening: (url) => announce(log, url, adminUrl),
  });
  const admin = await openAdmin(settings, {
    readiness: workers.readiness,
    metrics: async () => formatMetrics([...metrics.snapshot(), ...(await workers.metrics())]),
  });
  adminUrl = admin?.url;
  void shutdown.requested.then(workers.stop);
  const status = await workers.ended;
  await admin?.close(0);
  return status;
}

async function runWorker(options: RunOptions): Promise<number> {
  const shutdown = watchSignals();
  const channel = createPrimaryChannel();
  const metrics = createMetrics();
  const shared = options.settings.replayStore === 'memory' ? await askForReplay(channel) : undefined;
  const replay =
    shared === undefined
      ? await openReplay({ ...options, metrics })
      : { store: createPrimaryReplayStore(channel, shared), close: async () => {} };
  const service = await createService({
    ...options,
    metrics,
    replay: replay.store,
    startNonceSecret: shared?.nonceSecret,
  });
  answerPrimary({ channel, service, metrics, shutdown });
  const api = await openApi(options.settings, service);
  channel.send({ type: 'listening', url: api.url });
  service.fetchKeys();
  await shutdown.requested;
  await stopService(service, api, options.log);
  await replay.close();
  process.disconnect();
  return exitCodes.ok;
}

function createPrimaryChannel(): PrimaryChannel {
  return {
    send: (message: ToPrimary) => process.send?.(message, undefined, {}, () => {}),
    onMessage: (listener) => process.on('message', (message) => listener(message as ToWorker)), // only the primary writes here
  };
}

interface WorkerParts {
  readonly channel: PrimaryChannel;
  readonly service: Service;
  readonly metrics: Metrics;
  readonly shutdown: Shutdown;
}

function answerPrimary({ channel, service, metrics, shutdown }: WorkerParts): void {
  channel.onMessage((message) => {
    if (message.type === 'shutdown') shutdown.request();
    if (message.type === 'report') {
      channel.send({ ...message, readiness: service.readiness(), metrics: metrics.snapshot() });
    }
  });
}

async function openApi(settings: Settings, service: Service): Promise<Listener> {
  const { host, port, keepAlive } = settings;
  const errorBody = errorBodyFormats[settings.errorBody];
  return open(
    {
      ...{ host, port, keepAlive, errorBody },
      onRequest: service.onRequest,
      onMalformed: service.noteMalformed,
      beforeCut: service.sendReady,
    },
    'PORT',
  );
}

async function openAdmin(settings: Settings, sources: AdminSources): Promise<Listener | undefined> {
  const { adminHost, adminPort, keepAlive } = settings;
  if (adminPort === 'off') return undefined;
  const errorBody = errorBodyFormats[settings.errorBody];
  const onRequest = createAdmin(sources, errorBody);
  return open({ onRequest, host: adminHost, port: adminPort, keepAlive, errorBody }, 'ADMIN_PORT');
}

async function open(options: Parameters<typeof listen>[0], setting: string): Promise<Listener> {
  try {
    return await listen(options);
  } catch (cause) {
    throw new StartFailure(
      `cannot listen on ${options.host}:${options.port}; choose another with ${setting}, or stop what uses it`,
      exitCodes.unavailable,
      { cause },
    );
  }
}

function announce(log: Log, url: string, adminUrl: string | undefined): void {
  log.write('info', 'listening', { url, admin_url: adminUrl });
  process.send?.({ type: 'listening', url, adminUrl });
}

async function stopService(service: Service, api: Listener, log: Log): Promise<void> {
  log.write('info', 'shutting_down', { grace_seconds: grace });
  service.drain();
  await api.close(grace);
  service.close();
}
