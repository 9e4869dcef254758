import type { Socket } from 'node:net';
import type { DecisionBatch } from '../console/wire.ts';
import { exitCodes, watchSignals } from '../lifecycle/exit.ts';
import { watchReloads } from '../lifecycle/reload.ts';
import { flushSpans } from '../lifecycle/spans.ts';
import { createHttpServer } from '../listener/http-server.ts';
import { createConnectionLimit } from '../listener/limits.ts';
import { openTls } from '../listener/open-tls.ts';
import { createMetrics } from '../observation/metrics.ts';
import { hasRevocations, openWorkerRevocations } from '../revocation/open-revocations.ts';
import { followKeys } from './followed-keys.ts';
import type { ToPrimary, ToWorker } from './messages.ts';
import { openReplay } from './open-replay.ts';
import { createPrimaryReplayStore, type PrimaryChannel, requestSharedReplay } from './replay-ipc.ts';
import { createForwardingReceiver, createWorkerRevocationStore } from './revocation-ipc.ts';
import { type RunOptions, readHttpOptions, stopGrace } from './service.ts';

/** Milliseconds between two reports of counters: a killed worker loses the counts of this time. */
const countInterval = 500;

/** Runs one worker with connections of the primary process, until the primary process stops it. */
export async function runWorker(options: RunOptions): Promise<number> {
  const { settings, log, command } = options;
  const channel = createPrimaryChannel();
  // A signal usually reaches all processes of a terminal: the primary process decides which one ends.
  const shutdown = watchSignals({ onSignal: () => channel.send({ type: 'leaving' }) });
  const reloads = watchReloads(log, { onSignal: 'ignore' });
  // Listen before loading, which may take long on a busy host.
  channel.onMessage((message) => {
    if (message.type === 'alive') channel.send({ type: 'alive' });
    if (message.type === 'shutdown') shutdown.request();
    if (message.type === 'reload') reloads.request();
  });
  const metrics = createMetrics();
  const shared = settings.replayStore === 'memory' ? await requestSharedReplay(channel) : undefined;
  const replay =
    shared === undefined
      ? await openReplay({ ...options, metrics })
      : { store: createPrimaryReplayStore(channel, shared), close: async () => {} };
  const service = await command.createService({
    ...options,
    ...{ metrics, reloads },
    replay: replay.store,
    ...(hasRevocations(settings) && {
      revocations: openWorkerRevocations(settings, createWorkerRevocationStore(channel)),
      ...(settings.sharedSignals !== '' && { signals: createForwardingReceiver(channel) }),
    }),
    startNonceSecret: shared?.nonceSecret,
    keySource: followKeys(channel),
    watchDecisions: settings.console === 'on' ? await options.console.openDecisionWatch(sendDecisions) : undefined,
  });
  channel.onMessage((message) => {
    if (message.type === 'drain') service.drain();
    if (message.type === 'report') {
      channel.send({ ...message, readiness: service.readiness(), metrics: metrics.snapshot() });
    }
  });
  const reportCounts = (): void => channel.send({ type: 'counted', metrics: metrics.snapshot() });
  setInterval(reportCounts, countInterval).unref();
  const http = createHttpServer({
    ...readHttpOptions(settings, service),
    createTlsServer: await openTls({ settings, reloads, log, metrics }),
    limit: createConnectionLimit(log, metrics),
  });
  onConnection(http.take, channel);
  channel.send({ type: 'ready' });
  await shutdown.requested;
  log.write('info', 'shutting_down', { grace_seconds: stopGrace });
  service.drain();
  await http.finish(stopGrace);
  reportCounts();
  service.close();
  await replay.close();
  await flushSpans();
  // The process ends with its channel, so the log is written first.
  await log.end();
  process.disconnect();
  return exitCodes.ok;
}

/** The next batch waits until the channel has taken this one, so that messages do not pile up here. */
function sendDecisions(batch: DecisionBatch, onTaken: () => void): void {
  const message: ToPrimary = { type: 'decisions', batch };
  if (process.send === undefined || !process.connected) return;
  process.send(message, undefined, {}, onTaken);
}

function createPrimaryChannel(): PrimaryChannel {
  return {
    send: (message: ToPrimary) => process.send?.(message, undefined, {}, () => {}),
    onMessage: (listener) => process.on('message', (message) => listener(message as ToWorker)), // only the primary writes here
  };
}

function onConnection(take: (socket: Socket) => void, channel: PrimaryChannel): void {
  process.on('message', (message: ToWorker, socket: Socket | undefined) => {
    if (message.type !== 'connection') return;
    // A connection that was closed meanwhile arrives as a message without a socket.
    if (socket !== undefined) take(socket);
    channel.send({ type: 'taken', id: message.id });
  });
}
