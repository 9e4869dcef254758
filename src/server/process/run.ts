import { setTimeout as sleep } from 'node:timers/promises';
import { parseTrust } from '../../core/http/external-url.ts';
import { errorBodyFormats } from '../../core/refusal/error-body.ts';
import { createAdmin, type Readiness } from '../admin/admin.ts';
import type { OpenedConsole } from '../console/opened-console.ts';
import { type KeyOwner, openKeyOwner } from '../keys/open-keys.ts';
import { exitCodes, processNumber, type Shutdown, surviveSupervisor, watchSignals } from '../lifecycle/exit.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import { watchReloads } from '../lifecycle/reload.ts';
import { findActivatedSocket, notifySystemd } from '../lifecycle/systemd.ts';
import { type ConnectionLimit, createConnectionLimit } from '../listener/connection-limit.ts';
import { type Listener, type ListenerOptions, openListener, removeStale } from '../listener/listener.ts';
import { openTls } from '../listener/open-tls.ts';
import { createMetrics, formatMetrics } from '../observation/metrics.ts';
import { flushSpans, openTraces } from '../observation/traces.ts';
import { type OwnedRevocations, openRevocations } from '../revocation/open-revocations.ts';
import { openRevokeEndpoint } from '../revocation/revoke-endpoint.ts';
import { countProcesses } from '../settings/settings.ts';
import { openReplay } from './open-replay.ts';
import type { RunOptions, Service } from './service.ts';
import { supervise } from './supervisor.ts';

/** Seconds for accepted requests; the process ends within 10. */
const stopGrace = 9;

/** Runs the service until a signal. Returns the exit status. Rejects with `StartFailure`. */
export async function run(options: RunOptions): Promise<number> {
  const count = countProcesses(options.settings);
  if (count > 1 && processNumber === undefined) return runProcesses(options, count);
  await openTraces(options.environment, options.log);
  const { settings, log } = options;
  const opened = settings.console === 'on' ? await options.openConsole(options) : undefined;
  try {
    return await runOne({ ...options, log: opened?.log ?? log }, opened);
  } finally {
    await opened?.close();
  }
}

async function runProcesses({ settings, log, environment }: RunOptions, count: number): Promise<number> {
  const descriptor = findActivatedSocket(environment);
  // Once: a process would remove the socket of another one.
  if (descriptor === undefined) await removeStale(settings.host);
  return supervise({
    ...{ count, log, descriptor, drainDelay: settings.drainDelay },
    onReady: () => notifySystemd(environment, 'READY=1', log),
    onStop: () => notifySystemd(environment, 'STOPPING=1', log),
  });
}

async function runOne(options: RunOptions, opened: OpenedConsole | undefined): Promise<number> {
  const { log, command } = options;
  const { shutdown = watchSignals(), reloads = watchReloads(log) } = options.door ?? {};
  const context = { ...options, reloads, metrics: createMetrics() };
  const keySource = await openKeyOwner(context);
  const owned = await openRevocations(context);
  const replay = await openReplay(context);
  const service = await command.createService({
    ...{ ...context, keySource, replay: replay.store },
    ...(owned !== undefined && { revocations: owned.revocations, signals: owned.signals }),
    watchDecisions: opened?.watchDecisions,
  });
  const limit = createConnectionLimit(context);
  const admin = await openAdmin(context, { service, keySource, owned, opened, limit });
  const api = await openApi(context, service, limit);
  announce(options, api.url, admin?.url);
  service.fetchKeys();
  await shutdown.requested;
  service.drain();
  await drain(options, shutdown);
  log.write('info', 'shutting_down', { grace_seconds: stopGrace });
  const waiting = setTimeout(() => service.endWaiting?.(), (stopGrace - 1) * 1000);
  await api.close(stopGrace);
  clearTimeout(waiting);
  service.close();
  await admin?.close(0);
  replay.close();
  owned?.close();
  await keySource.close();
  await flushSpans();
  return exitCodes.ok;
}

/** Rejects with `StartFailure` if the TLS files are unusable, or the address is unavailable. */
async function openApi(context: ProcessContext, { http }: Service, limit: ConnectionLimit): Promise<Listener> {
  const { host, port, keepAlive, tunnelTimeout, peerShare: share, trustProxy, errorBody } = context.settings;
  const options: ListenerOptions = {
    ...http,
    ...{ host, port, keepAlive, tunnelTimeout, limit },
    descriptor: findActivatedSocket(context.environment),
    createTlsServer: await openTls(context),
    peers: { share, isTrusted: parseTrust(trustProxy) },
    errorBody: errorBodyFormats[errorBody],
  };
  return openListener(options, { host: 'HOST', port: 'PORT' });
}

interface AdminParts {
  readonly service: Service;
  readonly keySource: KeyOwner;
  readonly owned: OwnedRevocations | undefined;
  readonly opened: OpenedConsole | undefined;
  /** Connections of both listeners. */
  readonly limit: ConnectionLimit;
}

async function openAdmin(
  context: ProcessContext & RunOptions,
  { service, keySource, owned, opened, limit }: AdminParts,
): Promise<Listener | undefined> {
  const { settings, metrics, command } = context;
  const { adminHost: host, adminPort: port, adminHosts: hosts, keepAlive, peerShare: share } = settings;
  if (port === 'off') return undefined;
  const { routes, assertionKeys } = service;
  const readiness = (): Readiness => {
    const state = service.readiness();
    return owned?.addReadiness(state) ?? state;
  };
  const errorBody = errorBodyFormats[settings.errorBody];
  const revoke = openRevokeEndpoint(context, owned, keySource.views);
  const onRequest = createAdmin({
    ...{ errorBody, hosts, readiness, assertionKeys, revoke },
    metrics: () => formatMetrics(metrics.snapshot()),
    console: opened?.createListener({ command, readiness, routes, keys: keySource.views }),
  });
  return openListener(
    { host, port, onRequest, keepAlive, errorBody, exclusive: true, limit, peers: { share } },
    { host: 'ADMIN_HOST', port: 'ADMIN_PORT' },
  );
}

function announce({ log, environment, door }: RunOptions, url: string, adminUrl: string | undefined): void {
  surviveSupervisor();
  notifySystemd(environment, 'READY=1', log);
  log.write('info', 'listening', { url, admin_url: adminUrl });
  // A parent that has ended closes the channel: `watchSignals` stops this process.
  if (door === undefined) process.send?.({ type: 'listening', url, adminUrl }, undefined, undefined, () => {});
  else door.announce(url, adminUrl);
}

/** Accepts connections until the load balancer has noticed that this instance is not ready. */
async function drain({ settings, environment, log }: RunOptions, { abandoned }: Shutdown): Promise<void> {
  notifySystemd(environment, 'STOPPING=1', log);
  const { drainDelay } = settings;
  if (drainDelay === 0) return;
  log.write('info', 'draining', { seconds: drainDelay });
  await Promise.race([sleep(drainDelay * 1000), abandoned]);
}
