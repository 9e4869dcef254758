import type { Socket } from 'node:net';
import { exitCodes, watchSignals } from '../lifecycle/exit.ts';
import { watchReloads } from '../lifecycle/reload.ts';
import { flushSpans } from '../lifecycle/spans.ts';
import { createHttpServer } from '../listener/http-server.ts';
import { createMetrics } from '../observation/metrics.ts';
import { hasRevocations, openWorkerRevocations } from '../revocation/open-revocations.ts';
import { createChannel, type PrimaryFunctions, type WorkerFunctions } from './channel.ts';
import { followKeys } from './followed-keys.ts';
import { createPrimaryReplayStore, openReplay, requestSharedReplay } from './open-replay.ts';
import { createForwardingReceiver, createWorkerRevocationStore } from './revocation-ipc.ts';
import { openHttpOptions, type RunOptions, stopGrace } from './service.ts';

/** Milliseconds between two reports of counters: a killed worker loses the counts of this time. */
const countInterval = 500;
/** Milliseconds for a batch of decisions. */
const batchTimeout = 5000;

/** Runs one worker with connections of the primary process, until the primary process stops it. */
export async function runWorker(options: RunOptions): Promise<number> {
  const { settings, log, command } = options;
  const channel = createChannel<WorkerFunctions, PrimaryFunctions>((message) =>
    process.send?.(message, undefined, {}, () => {}),
  );
  process.on('message', (message, socket) => channel.receive(message, socket as Socket | undefined)); // no other handle is sent
  // A signal usually reaches all processes of a terminal: the primary process decides which one ends.
  const shutdown = watchSignals({ onSignal: () => channel.call('leaving') });
  const reloads = watchReloads(log, { onSignal: 'ignore' });
  // Listen before loading, which may take long on a busy host.
  channel.provide({ alive: () => channel.call('alive'), shutdown: shutdown.request, reload: reloads.request });
  const metrics = createMetrics();
  const context = { ...options, metrics, reloads };
  const shared = settings.replayStore === 'memory' ? await requestSharedReplay(channel) : undefined;
  const replay =
    shared === undefined
      ? await openReplay(context)
      : { store: createPrimaryReplayStore(channel, shared), close: () => {} };
  const service = await command.createService({
    ...{ ...context, replay: replay.store },
    ...(hasRevocations(settings) && {
      revocations: openWorkerRevocations(settings, createWorkerRevocationStore(channel)),
      ...(settings.sharedSignals !== '' && { signals: createForwardingReceiver(channel) }),
    }),
    startNonceSecret: shared?.nonceSecret,
    keySource: followKeys(channel),
    ...(settings.console === 'on' && {
      // The next batch waits for the response to this one, so that messages do not pile up here.
      watchDecisions: await options.console.openDecisionWatch(
        (batch, onTaken) => void channel.request('showDecisions', batchTimeout, batch).then(onTaken),
      ),
    }),
  });
  channel.provide({
    drain: service.drain,
    report: () => ({ readiness: service.readiness(), metrics: metrics.snapshot() }),
  });
  const reportCounts = (): void => channel.call('counted', metrics.snapshot());
  setInterval(reportCounts, countInterval).unref();
  const http = createHttpServer(await openHttpOptions(context, service));
  channel.provide({
    connection(id, socket) {
      if (socket !== undefined) http.take(socket);
      channel.call('taken', id);
    },
  });
  channel.call('ready');
  await shutdown.requested;
  log.write('info', 'shutting_down', { grace_seconds: stopGrace });
  service.drain();
  await http.finish(stopGrace);
  reportCounts();
  service.close();
  replay.close();
  await flushSpans();
  // The process ends with its channel, so the log is written first.
  await log.end();
  process.disconnect();
  return exitCodes.ok;
}
