import type { Socket } from 'node:net';
import type { DecisionBatch } from '../console/wire.ts';
import { exitCodes } from '../lifecycle/exit.ts';
import { watchReloads } from '../lifecycle/reload.ts';
import { watchSignals } from '../lifecycle/shutdown.ts';
import { flushSpans } from '../lifecycle/spans.ts';
import { createConnectionLimit } from '../listener/descriptors.ts';
import { createHttpServer } from '../listener/http-server.ts';
import { openTls } from '../listener/open-tls.ts';
import { createMetrics } from '../observation/metrics.ts';
import { followKeys } from './followed-keys.ts';
import type { ToPrimary, ToWorker } from './messages.ts';
import { openReplay } from './open-replay.ts';
import { askForReplay, createPrimaryReplayStore, type PrimaryChannel } from './replay-ipc.ts';
import { type RunOptions, readHttpOptions, stopGrace } from './run-options.ts';

/** Milliseconds between two reports of what a worker has counted: at most so much is lost if it is killed. */
const countInterval = 500;

/** Runs one worker, which takes its connections from the primary process, until that tells it to stop. */
export async function runWorker(options: RunOptions): Promise<number> {
  const { settings, log, command } = options;
  const channel = createPrimaryChannel();
  // Who signals a worker usually signals all processes: the primary process decides what ends when.
  const shutdown = watchSignals({ onSignal: () => channel.send({ type: 'leaving' }) });
  const reloads = watchReloads(log, { onSignal: 'ignore' });
  // From the first moment on: loading may take long on a busy machine.
  channel.onMessage((message) => {
    if (message.type === 'alive') channel.send({ type: 'alive' });
    if (message.type === 'shutdown') shutdown.request();
    if (message.type === 'reload') reloads.request();
  });
  const metrics = createMetrics();
  const shared = settings.replayStore === 'memory' ? await askForReplay(channel) : undefined;
  const replay =
    shared === undefined
      ? await openReplay({ ...options, metrics })
      : { store: createPrimaryReplayStore(channel, shared), close: async () => {} };
  const service = await command.createService({
    ...options,
    ...{ metrics, reloads },
    replay: replay.store,
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
  // What a worker has counted outlives it, but for the last part of a second.
  const tellCounts = (): void => channel.send({ type: 'counted', metrics: metrics.snapshot() });
  setInterval(tellCounts, countInterval).unref();
  const http = createHttpServer({
    ...readHttpOptions(settings, service),
    createTlsServer: await openTls({ settings, reloads, log }),
    limit: createConnectionLimit(log, metrics),
  });
  onConnection(http.take, channel);
  channel.send({ type: 'ready' });
  await shutdown.requested;
  log.write('info', 'shutting_down', { grace_seconds: stopGrace });
  service.drain();
  await http.finish(stopGrace);
  tellCounts();
  service.close();
  await replay.close();
  await flushSpans();
  // The process ends with its channel: what waits to be written must be written before.
  await log.end();
  process.disconnect();
  return exitCodes.ok;
}

/** The next batch waits until the channel has taken this one: what the primary process does not read must not pile up here. */
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
    // A connection that has ended on its way comes as the message only.
    if (socket !== undefined) take(socket);
    channel.send({ type: 'taken', id: message.id });
  });
}
