import cluster from 'node:cluster';
import { readCall } from '../../explain/input/explained-call.ts';
import { readInput } from '../../explain/input/read-input.ts';
import { leaveCertificateOpen } from '../../explain/open-certificate.ts';
import type { DecisionWatchOptions } from '../../server/console/opened-console.ts';
import type { PasteResult } from '../../server/console/wire.ts';
import { beginExchange } from '../../server/http/exchange.ts';
import { createPendingRequests } from '../../server/process/messages.ts';
import { showText } from '../../shown-text.ts';
import { explainRequest } from './explained-checks.ts';

type ToWorker = { readonly type: 'paste'; readonly id: number; readonly text: string };
type FromWorker = { readonly type: 'pasted'; readonly id: number; readonly result: PasteResult };

/** Limit of one explanation by a worker, in milliseconds. */
const timeout = 5000;
const failed: PasteResult = { problem: 'The service cannot explain it now. Try again.' };

/** Explains pasted text by the rules of this process. Neither the text nor the result is kept. */
export type ExplainPasted = (text: string) => Promise<PasteResult>;

/** Explains for the primary process, which has no rules. */
export function offerPaste(options: DecisionWatchOptions): void {
  process.on('message', ({ type, id, text }: ToWorker) => {
    if (type !== 'paste') return;
    void explainPasted(text, options).then((result) => {
      const message: FromWorker = { type: 'pasted', id, result };
      if (process.connected) process.send?.(message, undefined, {}, () => {});
    });
  });
}

/** Sends the text to the workers, which have the rules. The first result counts: a worker that is starting sends none. */
export function createWorkerPaste(): ExplainPasted {
  const pending = createPendingRequests<PasteResult>(timeout);
  cluster.on('message', (_, { type, id, result }: FromWorker) => {
    if (type === 'pasted') pending.settle(id, result);
  });
  return async (text) => {
    const result = await pending.request((id) => {
      const message: ToWorker = { type: 'paste', id, text };
      // A worker that has ended meanwhile sends no result.
      for (const worker of Object.values(cluster.workers ?? {}))
        if (worker?.isConnected()) worker.send(message, () => undefined);
    });
    return result ?? failed;
  };
}

export function explainPasted(text: string, options: DecisionWatchOptions): Promise<PasteResult> {
  // Rules may not be loaded yet.
  return explainText(text, options).catch(() => failed);
}

async function explainText(text: string, options: DecisionWatchOptions): Promise<PasteResult> {
  const input = readInput(text);
  if (input.kind === 'unread') return { problem: input.problem.replaceAll('Pipe in', 'Paste') };
  const call = input.kind === 'calls' ? input.calls[0] : input;
  if (call === undefined || call.kind === 'log-line' || call.kind === 'response') {
    return { problem: 'Paste a token or a request. For a log line or a response: portcullis explain' };
  }
  const { request, connection } = readCall(call, { method: undefined, url: undefined });
  const path = new URL(request.url).pathname;
  const exchange = { ...beginExchange(request, connection), route: path };
  const { server } = options;
  const authorizer =
    options.findAuthorizer(exchange) ?? (server === undefined ? undefined : { server, policy: undefined, connection });
  if (authorizer === undefined)
    return { problem: 'No rule that needs a token matches. Paste the request with its URL.' };
  return {
    ...(call.url !== undefined && { request: showText(`${request.method} ${path}`) }),
    repairs: (call.repairs ?? []).map(({ note }) => note),
    explanation: await explainRequest(request, authorizer, options, Date.now() / 1000, leaveCertificateOpen),
  };
}
