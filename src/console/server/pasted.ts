import cluster from 'node:cluster';
import { decideBy } from '../../explain/deciding-rule.ts';
import { readCall } from '../../explain/input/explained-call.ts';
import { readInput } from '../../explain/input/read-input.ts';
import { leaveCertificateOpen } from '../../explain/open-certificate.ts';
import type { DecisionWatchOptions } from '../../server/console/opened-console.ts';
import type { PasteResult } from '../../server/console/wire.ts';
import { beginExchange } from '../../server/http/exchange.ts';
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
  let nextId = 0;
  return (text) =>
    new Promise((resolve) => {
      const workers = Object.values(cluster.workers ?? {}).flatMap((each) => (each?.isConnected() ? [each] : []));
      const message: ToWorker = { type: 'paste', id: nextId++, text };
      const finish = (result: PasteResult): void => {
        clearTimeout(timer);
        for (const worker of workers) worker.off('message', receive);
        resolve(result);
      };
      const receive = ({ type, id, result }: FromWorker): void => {
        if (type === 'pasted' && id === message.id) finish(result);
      };
      const timer = setTimeout(() => finish(failed), timeout);
      // A worker that has ended meanwhile sends no result.
      for (const worker of workers) worker.on('message', receive).send(message, () => undefined);
    });
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
  const { rule } = authorizer;
  const open = leaveCertificateOpen(await explainRequest(request, authorizer, { ...options, at: Date.now() / 1000 }));
  return {
    ...(call.url !== undefined && { request: showText(`${request.method} ${path}`) }),
    repairs: (call.repairs ?? []).map(({ note }) => note),
    explanation: rule === undefined ? open : decideBy(rule, open),
  };
}
