import { checks } from '../../core/checks.ts';
import { failures } from '../../core/failures.ts';
import type { ResourceRequest } from '../../core/http/request.ts';
import { createWithhold, shorten, showValue } from '../../core/shown-text.ts';
import type { ExplainedCheck } from '../../explain/explained-check.ts';
import { decideBy, type Explanation, nameCheck } from '../../explain/explanation.ts';
import { secretsOf } from '../../explain/facts.ts';
import type { Authorizer, DecisionWatchOptions } from '../../server/console/opened-console.ts';
import type { DecisionFacts } from '../../server/console/wire.ts';
import type { Exchange } from '../../server/http/exchange.ts';
import { describeRefusal } from '../../server/observation/observe.ts';

/** Rate limit of explained requests: burst, then requests per second. */
const burst = 200;
const perSecond = 50;
const reservedForRefused = 100;

/**
 * Evaluates every check of a request again, right after its response: one request per event-loop iteration, within the rate
 * limit. Its token is not kept longer.
 */
export function createCheckExplainer(
  options: DecisionWatchOptions,
  deliver: (facts: DecisionFacts) => void,
): (exchange: Exchange) => void {
  const waiting: { readonly exchange: Exchange; readonly at: number }[] = [];
  let isBusy = false;
  let left = burst;
  let filledAt = performance.now();

  const explainNext = async (): Promise<void> => {
    const next = waiting.shift();
    if (next !== undefined) deliver(await describe(next.exchange, next.at, options));
    if (waiting.length > 0) setImmediate(() => void explainNext());
    else isBusy = false;
  };

  return (exchange) => {
    const now = performance.now();
    left = Math.min(burst, left + ((now - filledAt) / 1000) * perSecond);
    filledAt = now;
    const isRefused = exchange.reason !== undefined || exchange.wouldRefuse !== undefined;
    if (left < (isRefused ? 1 : reservedForRefused)) return;
    left--;
    waiting.push({ exchange, at: Date.now() / 1000 });
    if (isBusy) return;
    isBusy = true;
    setImmediate(() => void explainNext());
  };
}

/** Evaluates every check of a request. `amend` changes the explanation before the rule decides. */
export async function explainRequest(
  request: ResourceRequest,
  { server, policy, connection, rule }: Authorizer,
  { labels, domainHasScheme }: DecisionWatchOptions,
  at: number,
  amend: (explanation: Explanation) => Explanation,
): Promise<Explanation> {
  // Loaded only if the console is on.
  const { explain } = await import('../../explain/explain.ts');
  const explanation = amend(await explain(server, request, policy, connection, { at, labels, domainHasScheme }));
  return rule === undefined ? explanation : decideBy(rule, explanation);
}

/** Adds what a dry run cannot tell: the outcome of the replay check of the request itself. */
function addReplay(explanation: Explanation, reason: string | undefined): Explanation {
  const refused = checks.replay.reasons.find((each) => each === reason);
  if (refused === undefined && reason !== undefined) return explanation;
  const replace = (outcome: Omit<ExplainedCheck, 'id' | 'group'>): readonly ExplainedCheck[] =>
    explanation.checks.map((check) => (check.id === 'replay' ? { ...nameCheck('replay'), ...outcome } : check));
  if (refused === undefined) return { ...explanation, checks: replace({ verdict: 'pass' }) };
  const { fix, status = 503 } = failures[refused];
  const failed = replace({ verdict: 'fail', reason: refused, fix, docs: `refusals.md#${refused}` });
  return { ...explanation, verdict: 'refused', reason: refused, status, checks: failed };
}

async function describe(exchange: Exchange, at: number, options: DecisionWatchOptions): Promise<DecisionFacts> {
  const { id, request, evidence, context, cause } = exchange;
  const withhold = createWithhold(secretsOf(request));
  const { kid, ...logged } = evidence === undefined ? {} : describeRefusal(evidence);
  const facts = Object.entries({
    ...logged,
    ...(typeof kid === 'string' && { kid: shorten(kid) }),
    ...context,
    ...(cause instanceof Error && { cause: `${cause.name}: ${cause.message}` }),
  }).map(([name, value]) => [name, withhold(showValue(value))] as const);
  const authorizer = options.findAuthorizer(exchange);
  if (authorizer === undefined || authorizer === 'open') return { id, facts };
  try {
    const reason = exchange.reason ?? exchange.wouldRefuse;
    const amend = (explanation: Explanation): Explanation => addReplay(explanation, reason);
    return { id, facts, explanation: await explainRequest(request, authorizer, options, at, amend) };
  } catch {
    // The console shows the request without its checks.
    return { id, facts };
  }
}
