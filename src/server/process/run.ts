import cluster from 'node:cluster';
import type { RequestListener } from 'node:http';
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
import { createConnectionLimit } from '../listener/limits.ts';
import {
  type AddressSettings,
  describeListenFailure,
  type ListenAddress,
  type Listener,
  listen,
} from '../listener/listener.ts';
import { openTls } from '../listener/open-tls.ts';
import type { Log } from '../observation/log.ts';
import { createMetrics, formatMetrics, mergeSnapshots } from '../observation/metrics.ts';
import { registerProcessMetrics } from '../observation/process-metrics.ts';
import { openTraces } from '../observation/traces.ts';
import { type OwnedRevocations, openRevocations } from '../revocation/open-revocations.ts';
import { openRevokeEndpoint } from '../revocation/revoke-endpoint.ts';
import type { Settings } from '../settings/settings.ts';
import { openHandOver } from './hand-over.ts';
import { readDenyList } from './open-deny-list.ts';
import { openReplay, openSharedReplay, readRedisOptions } from './open-replay.ts';
import { startWorkers } from './primary.ts';
import { createRevocationRelay } from './revocation-ipc.ts';
import { type RunOptions, readHttpOptions, stopGrace } from './service.ts';
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
  const { settings, log, command } = options;
  const shutdown = watchSignals();
  const reloads = watchReloads(log, { onSignal: 'reload' });
  const metrics = createMetrics();
  const replay = await openReplay({ ...options, metrics });
  const keySource = await openKeyOwner({ ...options, metrics });
  const owned = await openRevocations({ ...options, metrics, readRedis: readRedisOptions });
  const service = await command.createService({
    ...{ ...options, metrics, reloads, keySource, replay: replay.store },
    ...(owned !== undefined && { revocations: owned.revocations, signals: owned.signals }),
    watchDecisions: opened?.watchDecisions,
  });
  const { routes, assertionKeys } = service;
  const readiness = (): Readiness => addReadiness(owned, service.readiness());
  const admin = await openAdmin(
    settings,
    {
      ...{ readiness, assertionKeys, metrics: () => formatMetrics(metrics.snapshot()) },
      revoke: openRevokeEndpoint({ settings, owned, keys: keySource, reloads, log }),
    },
    opened?.createListener({ command, workers: 1, readiness, routes, keys: keySource.views }),
  );
  const createTlsServer = await openTls({ settings, reloads, log, metrics });
  const limit = createConnectionLimit(log, metrics);
  const api = await open(
    (address) => listen({ ...readHttpOptions(settings, service), createTlsServer, limit, ...address }),
    readApi(options),
  );
  announce(options, api.url, admin?.url);
  service.fetchKeys();
  await shutdown.requested;
  service.drain();
  notifySystemd(options.environment, 'STOPPING=1', log);
  await drain(settings, log);
  log.write('info', 'shutting_down', { grace_seconds: stopGrace });
  await api.close(stopGrace);
  service.close();
  await admin?.close(0);
  await replay.close();
  owned?.close();
  await keySource.close();
  await flushSpans();
  return exitCodes.ok;
}

async function runPrimary(options: RunOptions, count: number, opened: OpenedConsole | undefined): Promise<number> {
  const { settings, log, command } = options;
  const shutdown = watchSignals();
  const reloads = watchReloads(log, { onSignal: 'reload' });
  if (settings.denyList !== '') readDenyList(settings.denyList);
  const metrics = createMetrics();
  registerProcessMetrics(metrics);
  // The store in memory is here, so that workers share it.
  const replay = settings.replayStore === 'memory' ? openSharedReplay(metrics) : undefined;
  const keyOwner = await openKeyOwner({ ...options, metrics });
  const owned = await openRevocations({ ...options, metrics, readRedis: readRedisOptions });
  const { onReady, routes, assertionKeys } = await command.openPrimary({ settings, log, metrics, reloads, keyOwner });
  const scheme = settings.tlsCert === '' ? 'http' : 'https';
  const limit = createConnectionLimit(log, metrics);
  const handOver = await open((address) => openHandOver({ ...address, scheme, limit }), readApi(options));
  let adminUrl: string | undefined;
  const workers = startWorkers({
    ...{ count, log, keyOwner, handOver },
    replay,
    relay: owned && createRevocationRelay(owned.parts, owned.signals),
    onDecisions: opened?.take,
    onReady() {
      announce(options, handOver.url, adminUrl);
      onReady();
    },
  });
  reloads.add(workers.reload);
  reloads.add(() => log.select(options.readAgain()));
  const readiness = async (): Promise<Readiness> => addReadiness(owned, await workers.readiness());
  const admin = await openAdmin(
    settings,
    {
      readiness,
      assertionKeys,
      metrics: async () => formatMetrics(mergeSnapshots([metrics.snapshot(), await workers.metrics()])),
      revoke: openRevokeEndpoint({ settings, owned, keys: keyOwner, reloads, log }),
    },
    opened?.createListener({ command, workers: count, readiness, routes, keys: keyOwner.views }),
  );
  adminUrl = admin?.url;
  void shutdown.requested.then(async () => {
    workers.drain();
    notifySystemd(options.environment, 'STOPPING=1', log);
    await drain(settings, log);
    await handOver.close();
    workers.stop(killAfter);
  });
  const status = await workers.ended;
  await admin?.close(0);
  owned?.close();
  await keyOwner.close();
  return status;
}

function addReadiness(owned: OwnedRevocations | undefined, readiness: Readiness): Readiness {
  return owned === undefined ? readiness : owned.addReadiness(readiness);
}

interface NamedAddress extends ListenAddress {
  readonly settings: AddressSettings;
}

function nameAddress({ spellings }: Settings, prefix: '' | 'ADMIN_'): AddressSettings {
  const [host, port] = [`${prefix}HOST`, `${prefix}PORT`];
  return { host: spellings[host] ?? host, port: spellings[port] ?? port };
}

function readApi({ settings, environment }: RunOptions): NamedAddress {
  const { host, port, socketMode: mode, socketGroup: group } = settings;
  const descriptor = findActivatedSocket(environment);
  return { host, port, socket: { mode, group }, descriptor, settings: nameAddress(settings, '') };
}

async function openAdmin(
  settings: Settings,
  sources: AdminSources,
  console: RequestListener | undefined,
): Promise<Listener | undefined> {
  const { adminHost: host, adminPort: port, keepAlive } = settings;
  if (port === 'off') return undefined;
  const errorBody = errorBodyFormats[settings.errorBody];
  const onRequest = createAdmin(sources, { errorBody, hosts: settings.adminHosts, console });
  return open((address) => listen({ onRequest, keepAlive, errorBody, ...address }), {
    host,
    port,
    settings: nameAddress(settings, 'ADMIN_'),
  });
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
    throw new StartFailure(describeListenFailure({ shown, isUnix, settings }, cause), exitCodes.unavailable, { cause });
  }
}

function announce({ log, environment }: RunOptions, url: string, adminUrl: string | undefined): void {
  notifySystemd(environment, 'READY=1', log);
  log.write('info', 'listening', { url, admin_url: adminUrl });
  process.send?.({ type: 'listening', url, adminUrl });
}

/** Accepts connections until the load balancer has noticed that this instance is not ready. */
async function drain({ drainDelay }: Settings, log: Log): Promise<void> {
  if (drainDelay === 0) return;
  log.write('info', 'draining', { seconds: drainDelay });
  await sleep(drainDelay * 1000);
}
