import cluster from 'node:cluster';
import { explainOpenRoute, leaveCertificateOpen, rankExplanation } from '../../explain/explanation.ts';
import { readCall } from '../../explain/input/explained-call.ts';
import type { CallInput } from '../../explain/input/input.ts';
import { readInput } from '../../explain/input/read-input.ts';
import type { Authorizer, DecisionWatchOptions } from '../../server/console/opened-console.ts';
import type { PastedRequest, PasteResult } from '../../server/console/wire.ts';
import { Exchange } from '../../server/http/exchange.ts';
import { createPendingRequests } from '../../server/process/pending-requests.ts';
import { showText } from '../../shown-text.ts';
import { explainRequest } from './explained-checks.ts';

type ToWorker = { readonly type: 'paste'; readonly id: number; readonly text: string };
type FromWorker = { readonly type: 'pasted'; readonly id: number; readonly result: PasteResult };

/** Limit of one explanation by a worker, in milliseconds. */
const timeout = 5000;
/** Maximum number of explained requests. */
const maxCalls = 50;
const failed = { problem: 'The service cannot explain it now. Try again.' };

/** Explains pasted text by the rules of this process. Neither the text nor the result is kept. */
export type ExplainPasted = (text: string) => Promise<PasteResult>;

/** Explains for the primary process, which has no rules. */
export function offerPaste(options: DecisionWatchOptions): void {
  process.on('message', ({ type, id, text }: ToWorker) => {
    if (type !== 'paste') return;
    const send = (result: PasteResult): void => {
      const message: FromWorker = { type: 'pasted', id, result };
      if (process.connected) process.send?.(message, undefined, {}, () => {});
    };
    // A pasted text must not end the worker.
    explainPasted(text, options).then(send, () => send(failed));
  });
}

/** Sends the text to the workers, which have the rules. The first result counts: a worker that is starting sends none. */
export function createWorkerPaste(): ExplainPasted {
  const pending = createPendingRequests<PasteResult>();
  cluster.on('message', (_, { type, id, result }: FromWorker) => {
    if (type === 'pasted') pending.settle(id, result);
  });
  return async (text) => {
    const result = await pending.request(timeout, (id) => {
      const message: ToWorker = { type: 'paste', id, text };
      // A worker that has ended meanwhile sends no result.
      for (const worker of Object.values(cluster.workers ?? {}))
        if (worker?.isConnected()) worker.send(message, () => undefined);
    });
    return result ?? failed;
  };
}

export async function explainPasted(text: string, options: DecisionWatchOptions): Promise<PasteResult> {
  const input = readInput(text, { entry: 'all' });
  if (input.kind === 'unread') return { problem: input.problem.replaceAll('Pipe in', 'Paste') };
  if (input.kind === 'log-line' || input.kind === 'response') {
    return { problem: 'Paste a token or a request. For a log line or a response: portcullis explain' };
  }
  const calls = input.kind === 'calls' ? input.calls : [input];
  if (calls.length > maxCalls) return { problem: `There are ${calls.length} requests. Paste at most ${maxCalls}.` };
  const requests: PastedRequest[] = [];
  // Rules may not be loaded yet.
  for (const call of calls) requests.push(await explainCall(call, options).catch(() => failed));
  return { requests: requests.toSorted((one, other) => rank(one) - rank(other)) };
}

function rank({ explanation }: PastedRequest): number {
  return explanation === undefined ? Number.MAX_SAFE_INTEGER : rankExplanation(explanation);
}

async function explainCall(call: CallInput, options: DecisionWatchOptions): Promise<PastedRequest> {
  const { request, connection } = readCall(call, { method: undefined, url: undefined });
  const path = new URL(request.url).pathname;
  const authorizer = options.findAuthorizer({ ...new Exchange(request, connection), route: path });
  const { server } = options;
  const shown = {
    ...(call.url !== undefined && { request: showText(`${request.method} ${path}`) }),
    repairs: (call.repairs ?? []).map(({ note }) => note),
  };
  if (authorizer === 'open') return { ...shown, route: 'open', explanation: explainOpenRoute(path) };
  const explainBy = async (chosen: Authorizer): Promise<PastedRequest> => ({
    ...shown,
    explanation: await explainRequest(request, chosen, options, Date.now() / 1000, leaveCertificateOpen),
  });
  if (authorizer !== undefined) return explainBy(authorizer);
  if (server === undefined)
    return { ...shown, problem: 'No rule that needs a token matches. Paste the request with its URL.' };
  const explained = await explainBy({ server, policy: undefined, connection });
  if (call.url === undefined) return explained;
  return explained.explanation?.reason === 'missing_credentials'
    ? { ...shown, problem: `The service has no route ${showText(path)}: its response is 404.` }
    : { ...explained, route: 'unknown' };
}
