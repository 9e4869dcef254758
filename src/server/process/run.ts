import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorBodyFormats } from '../../refusal/error-body.ts';
import { type AdminSources, createAdmin, type Readiness } from '../admin/admin.ts';
import type { OpenedConsole } from '../console/opened-console.ts';
import { openKeyOwner } from '../keys/open-keys.ts';
import { exitCodes, StartFailure, watchSignals } from '../lifecycle/exit.ts';
import { watchReloads } from '../lifecycle/reload.ts';
import { flushSpans } from '../lifecycle/spans.ts';
import { findActivatedSocket, notifySystemd } from '../lifecycle/systemd.ts';
import { createConnectionLimit } from '../listener/connection-limit.ts';
import {
  type AddressSettings,
  describeListenFailure,
  type ListenAddress,
  type Listener,
  listen,
} from '../listener/listener.ts';
import { createMetrics, formatMetrics, mergeSnapshots } from '../observation/metrics.ts';
import { registerProcessMetrics } from '../observation/process-metrics.ts';
import { openTraces } from '../observation/traces.ts';
import { openRevocations } from '../revocation/open-revocations.ts';
import { openRevokeEndpoint } from '../revocation/revoke-endpoint.ts';
import type { Settings } from '../settings/settings.ts';
import { provideKeys } from './followed-keys.ts';
import { openHandOver } from './hand-over.ts';
import { readDenyList } from './open-deny-list.ts';
import { openReplay, openSharedReplay, readRedisOptions } from './open-replay.ts';
import { startWorkers } from './primary.ts';
import { createRevocationRelay } from './revocation-ipc.ts';
import { openHttpOptions, type RunOptions, type Service, stopGrace } from './service.ts';
import { runWorker } from './worker.ts';

/** Seconds after which a worker that has not ended is killed. */
const killAfter = 9.5;

/** Runs the service until a signal. Returns the exit status. Rejects with `StartFailure`. */
export async function run(options: RunOptions): Promise<number> {
  const { workers } = options.settings;
  const count = workers === 'auto' ? availableParallelism() : workers;
  await openTraces(options.environment, cluster.isWorker ? undefined : options.log);
  if (cluster.isWorker) return runWorker(options);
  const { settings, log } = options;
  const opened = settings.console === 'on' ? await options.console.openConsole(options) : undefined;
  const watched = { ...options, log: opened?.log ?? log };
  try {
    return await (count > 1 ? runPrimary(watched, count, opened) : runSingle(watched, opened));
  } finally {
    await opened?.close();
  }
}

async function runSingle(options: RunOptions, opened: OpenedConsole | undefined): Promise<number> {
  const owner = await openOwner(options, opened);
  const { shutdown, context, keySource, owned } = owner;
  const replay = await openReplay(context);
  const service = await options.command.createService({
    ...{ ...context, keySource, replay: replay.store },
    ...(owned !== undefined && { revocations: owned.revocations, signals: owned.signals }),
    watchDecisions: opened?.watchDecisions,
  });
  const admin = await owner.openAdmin(1, service, {
    readiness: service.readiness,
    metrics: () => formatMetrics(context.metrics.snapshot()),
  });
  const http = await openHttpOptions(context, service);
  const api = await open((address) => listen({ ...http, ...address }), readApi(options));
  announce(options, api.url, admin?.url);
  service.fetchKeys();
  await shutdown.requested;
  service.drain();
  await drain(options);
  options.log.write('info', 'shutting_down', { grace_seconds: stopGrace });
  await api.close(stopGrace);
  service.close();
  await admin?.close(0);
  replay.close();
  await owner.close();
  await flushSpans();
  return exitCodes.ok;
}

async function runPrimary(options: RunOptions, count: number, opened: OpenedConsole | undefined): Promise<number> {
  const { settings, log } = options;
  if (settings.denyList !== '') readDenyList(settings.denyList);
  const owner = await openOwner(options, opened);
  const { shutdown, context, keySource, owned } = owner;
  const { reloads, metrics } = context;
  registerProcessMetrics(metrics);
  // The store in memory is here, so that workers share it.
  const replay = settings.replayStore === 'memory' ? openSharedReplay(metrics) : undefined;
  const shared = await options.command.openPrimary(context, keySource);
  const scheme = settings.tlsCert === '' ? 'http' : 'https';
  const limit = createConnectionLimit(context);
  const handOver = await open((address) => openHandOver({ ...address, scheme, limit }), readApi(options));
  const relay = owned && createRevocationRelay(owned);
  let adminUrl: string | undefined;
  const workers = startWorkers({
    ...{ count, log, handOver },
    provide: (channel) => ({
      keys: (request) => provideKeys(keySource, request, channel),
      ...replay,
      ...relay?.(channel),
      ...(opened !== undefined && { showDecisions: opened.take }),
    }),
    onReady() {
      announce(options, handOver.url, adminUrl);
      shared.onReady();
    },
  });
  keySource.onNews((name, news) => workers.callAll('keys', { name, news }));
  reloads.add(() => workers.callAll('reload'));
  reloads.add(() => log.select(options.readAgain()));
  const admin = await owner.openAdmin(count, shared, {
    readiness: workers.readiness,
    metrics: async () => formatMetrics(mergeSnapshots([metrics.snapshot(), await workers.metrics()])),
  });
  adminUrl = admin?.url;
  void shutdown.requested.then(async () => {
    workers.drain();
    await drain(options);
    await handOver.close();
    workers.stop(killAfter);
  });
  const status = await workers.ended;
  await admin?.close(0);
  await owner.close();
  return status;
}

/** Opens what belongs to the process that owns the keys and the revocations: the only one, or the primary. */
async function openOwner(options: RunOptions, opened: OpenedConsole | undefined) {
  const { settings, log, command } = options;
  const shutdown = watchSignals();
  const context = { ...options, reloads: watchReloads(log, { onSignal: 'reload' }), metrics: createMetrics() };
  const keySource = await openKeyOwner(context);
  const owned = await openRevocations({ ...context, readRedis: readRedisOptions });
  return {
    ...{ shutdown, context, keySource, owned },
    async openAdmin(
      workers: number,
      { routes, assertionKeys }: Pick<Service, 'routes' | 'assertionKeys'>,
      sources: Pick<AdminSources, 'readiness' | 'metrics'>,
    ): Promise<Listener | undefined> {
      const { adminHost: host, adminPort: port, adminHosts: hosts, keepAlive } = settings;
      const readiness = async (): Promise<Readiness> => {
        const state = await sources.readiness();
        return owned?.addReadiness(state) ?? state;
      };
      const errorBody = errorBodyFormats[settings.errorBody];
      const onRequest = createAdmin(
        {
          ...{ readiness, metrics: sources.metrics, assertionKeys },
          revoke: openRevokeEndpoint(context, owned, keySource.views),
        },
        {
          errorBody,
          hosts,
          console: opened?.createListener({ command, workers, readiness, routes, keys: keySource.views }),
        },
      );
      if (port === 'off') return undefined;
      return open((address) => listen({ onRequest, keepAlive, errorBody, ...address }), {
        ...{ host, port, settings: nameAddress(settings, 'ADMIN_') },
      });
    },
    async close() {
      owned?.close();
      await keySource.close();
    },
  };
}

interface NamedAddress extends ListenAddress {
  readonly settings: AddressSettings;
}

function nameAddress({ spellings }: Settings, prefix: '' | 'ADMIN_'): AddressSettings {
  const [host, port] = [`${prefix}HOST`, `${prefix}PORT`];
  return { host: spellings[host] ?? host, port: spellings[port] ?? port };
}

function readApi({ settings, environment }: RunOptions): NamedAddress {
  const { host, port } = settings;
  const descriptor = findActivatedSocket(environment);
  return { host, port, descriptor, settings: nameAddress(settings, '') };
}

async function open<T>(openAt: (address: ListenAddress) => Promise<T>, address: NamedAddress): Promise<T> {
  const { settings, ...place } = address;
  const { host, port, descriptor } = place;
  const isUnix = host.startsWith('unix:');
  try {
    return await openAt(place);
  } catch (cause) {
    const name = isUnix ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
    const shown = descriptor === undefined ? name : 'the socket of systemd';
    throw new StartFailure(describeListenFailure({ shown, isUnix, settings }, cause), cause, exitCodes.unavailable);
  }
}

function announce({ log, environment }: RunOptions, url: string, adminUrl: string | undefined): void {
  notifySystemd(environment, 'READY=1', log);
  log.write('info', 'listening', { url, admin_url: adminUrl });
  process.send?.({ type: 'listening', url, adminUrl });
}

/** Accepts connections until the load balancer has noticed that this instance is not ready. */
async function drain({ settings, environment, log }: RunOptions): Promise<void> {
  notifySystemd(environment, 'STOPPING=1', log);
  const { drainDelay } = settings;
  if (drainDelay === 0) return;
  log.write('info', 'draining', { seconds: drainDelay });
  await sleep(drainDelay * 1000);
}
