import { secretsOf } from '../../explain/call-facts.ts';
import { decideBy } from '../../explain/deciding-rule.ts';
import { createWithhold, shorten, showValue } from '../../explain/shown-text.ts';
import type { DecisionWatchOptions } from '../../server/console/opened-console.ts';
import type { DecisionFacts } from '../../server/console/wire.ts';
import type { Exchange } from '../../server/http/exchange.ts';
import { describeRefusal } from '../../server/observation/refusal-facts.ts';

/** How checks are walked. */
export interface CheckWalkOptions extends DecisionWatchOptions {
  readonly deliver: (facts: DecisionFacts) => void;
}

/** Calls whose checks are walked: as many at once, and as many a second from then on. */
const burst = 200;
const perSecond = 50;
/** What is left of the burst for refused calls. */
const keptForRefused = 100;

/** Walks the checks of a call once more, right after its answer: nothing of its token is kept longer than that. */
export type WalkChecks = (exchange: Exchange) => void;

/** Creates the walk: one call a turn of the event loop, and no more than it has room for. */
export function createCheckWalk(options: CheckWalkOptions): WalkChecks {
  const waiting: { readonly exchange: Exchange; readonly at: number }[] = [];
  let isWalking = false;
  let left = burst;
  let filledAt = performance.now();

  const walkOne = async (): Promise<void> => {
    const next = waiting.shift();
    if (next !== undefined) options.deliver(await describe(next.exchange, next.at, options));
    if (waiting.length > 0) setImmediate(() => void walkOne());
    else isWalking = false;
  };

  return (exchange) => {
    const now = performance.now();
    left = Math.min(burst, left + ((now - filledAt) / 1000) * perSecond);
    filledAt = now;
    const isRefused = exchange.reason !== undefined || exchange.wouldRefuse !== undefined;
    if (left < (isRefused ? 1 : keptForRefused)) return;
    left--;
    waiting.push({ exchange, at: Date.now() / 1000 });
    if (isWalking) return;
    isWalking = true;
    setImmediate(() => void walkOne());
  };
}

async function describe(exchange: Exchange, at: number, options: CheckWalkOptions): Promise<DecisionFacts> {
  const { id, request, evidence, context, cause } = exchange;
  const withhold = createWithhold(secretsOf(request));
  const { kid, ...told } = evidence === undefined ? {} : describeRefusal(evidence);
  const facts = Object.entries({
    ...told,
    ...(typeof kid === 'string' && { kid: shorten(kid) }),
    ...context,
    ...(cause instanceof Error && { cause: `${cause.name}: ${cause.message}` }),
  }).map(([name, value]) => [name, withhold(showValue(value))] as const);
  const judged = options.findJudged(exchange);
  if (judged === undefined) return { id, facts };
  try {
    // Loaded only for a console that is on.
    const { explain } = await import('../../explain/explain.ts');
    const { server, policy, connection, rule } = judged;
    const { labels, domainHasScheme } = options;
    const explanation = await explain(server, request, policy, connection, { at, labels, domainHasScheme });
    return { id, facts, explanation: rule === undefined ? explanation : decideBy(rule, explanation) };
  } catch {
    // A console that cannot explain a call still shows it.
    return { id, facts };
  }
}
