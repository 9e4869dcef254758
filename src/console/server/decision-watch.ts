import { setImmediate as nextIteration } from 'node:timers/promises';
import { checks } from '../../core/checks.ts';
import { failures, type Reason } from '../../core/failures.ts';
import type { ResourceRequest } from '../../core/http/request.ts';
import { omitUndefined } from '../../core/option-members.ts';
import { readRequestId } from '../../core/resource-server/events.ts';
import { createWithhold, shorten, showText, showValue } from '../../core/shown-text.ts';
import type { ExplainedCheck } from '../../explain/explained-check.ts';
import { decideBy, type Explanation, explainReason, listCausalFacts, nameCheck } from '../../explain/explanation.ts';
import { secretsOf } from '../../explain/facts.ts';
import { describeTarget } from '../../gate/match/request-target.ts';
import type { Authorizer, CreateDecisionWatch, DecisionWatchOptions } from '../../server/console/opened-console.ts';
import type { Decision, Outcome } from '../../server/console/wire.ts';
import { type Exchange, unmatched } from '../../server/http/exchange.ts';
import { describeRefusal } from '../../server/observation/observe.ts';
import type { Decisions, Facts } from './decisions.ts';

/** Rate limit of evaluated requests: burst, then requests per second. */
const burst = 200;
const perSecond = 50;
const reservedForRefused = 100;
/** Maximum length of a method. Every registered method is shorter. */
const maxMethod = 20;

/**
 * Keeps decisions. Evaluates every check of a request again, right after its response: one request per event-loop
 * iteration, within the rate limit. Its token is not kept longer.
 */
export function watchDecisions(decisions: Decisions): CreateDecisionWatch {
  return (options) => {
    let last: Promise<unknown> = Promise.resolve();
    let left = burst;
    let filledAt = performance.now();
    const evaluate = (exchange: Exchange): Promise<Facts> => {
      const at = Date.now() / 1000;
      const facts = last
        .then(() => nextIteration())
        .then(() => findFacts(exchange, at, options))
        // The console shows the request without its checks.
        .catch(() => ({ facts: [] }));
      last = facts;
      return facts;
    };
    return (exchange, status, milliseconds) => {
      const isRefused = (exchange.reason ?? exchange.wouldRefuse) !== undefined;
      if (!decisions.admit(isRefused ? 'refused' : 'others')) return;
      const now = performance.now();
      left = Math.min(burst, left + ((now - filledAt) / 1000) * perSecond);
      filledAt = now;
      const isEvaluated = left >= (isRefused ? 1 : reservedForRefused);
      if (isEvaluated) left--;
      const decision = describeDecision(exchange, status, milliseconds);
      decisions.keep(decision, isEvaluated ? evaluate(exchange) : undefined);
    };
  };
}

/** Describes one request without its credentials and identity. */
function describeDecision(exchange: Exchange, status: number, milliseconds: number): Decision {
  const { id, request, route, routeKind, reason, wouldRefuse, scheme, context } = exchange;
  const path = context?.['path'] ?? (route === unmatched ? describeTarget(request, undefined).path : undefined);
  return omitUndefined({
    ...{ id, route, routeKind, status, scheme, requestId: readRequestId(request), reason: reason ?? wouldRefuse },
    at: new Date().toISOString(),
    method: showText(request.method, maxMethod),
    path: typeof path === 'string' ? path : undefined,
    outcome: readOutcome(exchange, status),
    ms: Math.round(milliseconds * 1000) / 1000,
  });
}

function readOutcome({ reason, wouldRefuse, context }: Exchange, status: number): Outcome {
  if (reason !== undefined) return 'refused';
  if (wouldRefuse !== undefined) return 'would_refuse';
  // The gate has admitted the request, whatever the status of the upstream.
  return status < 400 || context?.['upstream'] !== undefined ? 'allowed' : 'other';
}

async function findFacts(exchange: Exchange, at: number, options: DecisionWatchOptions): Promise<Facts> {
  const { request, evidence, context, cause } = exchange;
  const withhold = createWithhold(secretsOf(request));
  const { kid, ...logged } = evidence === undefined ? {} : describeRefusal(evidence);
  const facts = Object.entries({
    ...logged,
    ...(typeof kid === 'string' && { kid: shorten(kid) }),
    ...context,
    ...(cause instanceof Error && { cause: `${cause.name}: ${cause.message}` }),
  }).map(([name, value]) => [name, withhold(showValue(value))] as const);
  const authorizer = options.findAuthorizer(exchange);
  if (typeof authorizer !== 'object') return { facts };
  const reason = exchange.reason ?? exchange.wouldRefuse;
  const amend = (explanation: Explanation): Explanation =>
    addOutcome(addReplay(explanation, reason), reason, Object.fromEntries(facts));
  const explanation = await explainRequest(request, authorizer, options, at, amend).catch(() => undefined);
  return { facts, ...(explanation !== undefined && { explanation }) };
}

/** Evaluates every check of a request. `amend` changes the explanation before the rule decides. */
export async function explainRequest(
  request: ResourceRequest,
  { server, policy, connection, rule }: Authorizer,
  { labels, domainHasScheme, disguise }: DecisionWatchOptions,
  at: number,
  amend: (explanation: Explanation) => Explanation,
): Promise<Explanation> {
  // Loaded only if the console is on.
  const { explain } = await import('../../explain/explain.ts');
  const explanation = amend(
    await explain(server, request, policy, connection, { at, labels, domainHasScheme, disguise }),
  );
  return rule === undefined ? explanation : decideBy(rule, explanation);
}

/** Adds a refusal that a dry run does not repeat: of an exchange, an endpoint or an upstream. */
function addOutcome(
  explanation: Explanation,
  reason: string | undefined,
  facts: Readonly<Record<string, string>>,
): Explanation {
  if (reason === undefined || explanation.verdict === 'refused' || !Object.hasOwn(failures, reason)) return explanation;
  const why = listCausalFacts(facts);
  const refused = explainReason(reason as Reason, explanation.at, { id: 'decision', group: 'decision', why }); // an own member
  const { against, checks } = explanation;
  return { ...explanation, ...refused, against, checks: [...checks, ...refused.checks] };
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
