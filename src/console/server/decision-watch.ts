import { showText } from '../../core/shown-text.ts';
import { describeTarget } from '../../gate/match/request-target.ts';
import type { CreateDecisionWatch } from '../../server/console/opened-console.ts';
import type { Decision, DecisionBatch, DecisionFacts, Outcome } from '../../server/console/wire.ts';
import { type Exchange, unmatched } from '../../server/http/exchange.ts';
import { createCheckExplainer } from './explained-checks.ts';

/** Interval of batches, in milliseconds. */
const interval = 100;
/** Maximum number of decisions in one batch. Admitted requests do not displace refused ones. */
const limits = { refused: 40, others: 20 };
/** Facts may arrive one batch after their decisions. */
const maxFacts = limits.refused + limits.others;
const requestIdForm = /^[\w.:-]{1,128}$/;
/** Maximum length of a method. Every registered method is shorter. */
const maxMethod = 20;

/** Passes decisions on in batches. Excess decisions are only counted. */
export function openDecisionWatch(take: (batch: DecisionBatch) => void): CreateDecisionWatch {
  return (options) => {
    let batch = createBatch();
    let isScheduled = false;
    const flush = (): void => {
      const { refused, others, facts, dropped } = batch;
      const decisions = [...refused, ...others].toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at));
      batch = createBatch();
      isScheduled = false;
      take({ decisions, facts, dropped });
    };
    const schedule = (): void => {
      if (!isScheduled) setTimeout(flush, interval).unref();
      isScheduled = true;
    };
    const explainChecks = createCheckExplainer(options, (facts) => {
      if (batch.facts.length < maxFacts) batch.facts.push(facts);
      schedule();
    });
    return (exchange, status, milliseconds) => {
      const { reason, wouldRefuse } = exchange;
      const kind = reason === undefined && wouldRefuse === undefined ? 'others' : 'refused';
      schedule();
      if (batch[kind].length >= limits[kind]) {
        batch.dropped++;
        return;
      }
      batch[kind].push(describeDecision(exchange, status, milliseconds));
      explainChecks(exchange);
    };
  };
}

function createBatch() {
  return { refused: [] as Decision[], others: [] as Decision[], facts: [] as DecisionFacts[], dropped: 0 };
}

/** Describes one request without its credentials and identity. */
function describeDecision(exchange: Exchange, status: number, milliseconds: number): Decision {
  const { id, request, route, routeKind, reason, wouldRefuse, scheme, context } = exchange;
  const path = context?.['path'] ?? (route === unmatched ? describeTarget(request, undefined).path : undefined);
  const sent = request.headers.get('x-request-id');
  const shownReason = reason ?? wouldRefuse;
  return {
    id,
    ...(sent !== null && requestIdForm.test(sent) && { requestId: sent }),
    at: new Date().toISOString(),
    method: showText(request.method, maxMethod),
    route,
    routeKind,
    ...(typeof path === 'string' && { path }),
    status,
    outcome: readOutcome(exchange, status),
    ...(shownReason !== undefined && { reason: shownReason }),
    ...(scheme !== undefined && { scheme }),
    ms: Math.round(milliseconds * 1000) / 1000,
  };
}

function readOutcome({ reason, wouldRefuse }: Exchange, status: number): Outcome {
  if (reason !== undefined) return 'refused';
  if (wouldRefuse !== undefined) return 'would_refuse';
  return status < 400 ? 'allowed' : 'other';
}
