import type { Trust } from '../../core/http/external-url.ts';
import { showText } from '../../core/shown-text.ts';
import {
  decideBy,
  type Explanation,
  explainOpenRoute,
  explainReason,
  leaveCertificateOpen,
  rankExplanation,
  startExplanation,
} from '../../explain/explanation.ts';
import { type ReceivedCall, readCall } from '../../explain/input/explained-call.ts';
import type { CallInput } from '../../explain/input/input.ts';
import { readInput } from '../../explain/input/read-input.ts';
import { formatInstant } from '../../explain/shown-time.ts';
import { explainForEachPeer } from '../../explain/unknown-peer.ts';
import { describeUnserved, explainUnserved } from '../../explain/unserved.ts';
import type { Authorizer, DecisionWatchOptions } from '../../server/console/opened-console.ts';
import type { PastedRequest, PasteResult } from '../../server/console/wire.ts';
import { Exchange } from '../../server/http/exchange.ts';
import { explainRequest } from './decision-watch.ts';

/** Maximum number of explained requests. */
const maxCalls = 50;
const onlyForCommand = /, a request(?:, a response)? or a log line\.$/;
export const failed: PasteResult & PastedRequest = { problem: 'The service cannot explain it now. Try again.' };

/** Explains pasted text by the rules of this process. Neither the text nor the result is kept. */
export type ExplainPasted = (text: string) => Promise<PasteResult>;

export async function explainPasted(text: string, options: DecisionWatchOptions, trust: Trust): Promise<PasteResult> {
  const input = readInput(text, { entry: 'all' });
  if (input.kind === 'unread') {
    // Responses and lines of the log are for the command only.
    const problem = input.problem.replaceAll('Pipe in', 'Paste').replace(onlyForCommand, ' or a request.');
    return { problem };
  }
  if (input.kind === 'log-line' || input.kind === 'response') {
    return { problem: 'Paste a token or a request. For a log line or a response: portcullis explain' };
  }
  const calls = input.kind === 'calls' ? input.calls : [input];
  if (calls.length > maxCalls) return { problem: `There are ${calls.length} requests. Paste at most ${maxCalls}.` };
  const requests: PastedRequest[] = [];
  // Rules may not be loaded yet.
  for (const call of calls) requests.push(await explainCall(call, options, trust).catch(() => failed));
  return { requests: requests.toSorted((one, other) => rank(one) - rank(other)) };
}

function rank({ explanation }: PastedRequest): number {
  return explanation === undefined ? Number.MAX_SAFE_INTEGER : rankExplanation(explanation);
}

async function explainCall(call: CallInput, options: DecisionWatchOptions, trust: Trust): Promise<PastedRequest> {
  const received = readCall(call);
  const { request, connection } = received;
  const path = new URL(request.url).pathname;
  const authorizer = options.findAuthorizer(
    { ...new Exchange(request, connection), route: path },
    call.kind === 'request' ? received : undefined,
  );
  const { server } = options;
  const shown = {
    ...(call.url !== undefined && { request: showText(`${request.method} ${path}`) }),
    repairs: (call.repairs ?? []).map(({ note }) => note),
  };
  const at = Date.now() / 1000;
  const time = formatInstant(Math.floor(at));
  if (authorizer === 'open') return { ...shown, route: 'open', explanation: explainOpenRoute(path) };
  if (typeof authorizer === 'string' && call.url !== undefined)
    return { ...shown, explanation: explainReason(authorizer, time, { id: 'call', group: 'call' }) };
  const withoutRoute = server && { server, policy: undefined, connection };
  const chosen = typeof authorizer === 'object' ? authorizer : withoutRoute;
  const status = typeof authorizer === 'number' && call.url !== undefined ? authorizer : undefined;
  const fix = status === undefined ? '' : describeUnserved(status, request, options.labels);
  if (chosen === undefined && status !== undefined) {
    const started = startExplanation(time);
    return { ...shown, explanation: explainUnserved(status, request, started, fix) };
  }
  if (chosen === undefined)
    return { ...shown, problem: 'No rule that needs a token matches. Paste the request with its URL.' };
  const explanation = await explainForEachPeer(trust, { request, connection }, (each) =>
    explainByRule(received, { ...chosen, connection: each }, options, at),
  );
  if (call.malformed !== undefined)
    return { ...shown, explanation: explainUnserved(400, request, explanation, call.malformed) };
  if (status === undefined) return { ...shown, explanation };
  return { ...shown, explanation: explainUnserved(status, request, explanation, fix) };
}

async function explainByRule(
  call: ReceivedCall,
  { rule, request = call.request, ...authorizer }: Authorizer,
  options: DecisionWatchOptions,
  at: number,
): Promise<Explanation> {
  const explainBy = (policy = authorizer.policy): Promise<Explanation> =>
    explainRequest(request, { ...authorizer, policy }, options, at, leaveCertificateOpen);
  const explanation = (await authorizer.explainByRule?.(call, explainBy)) ?? (await explainBy());
  return rule === undefined ? explanation : decideBy(rule, explanation);
}
