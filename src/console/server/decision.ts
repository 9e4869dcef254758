import { describeTarget } from '../../gate/match/refused-target.ts';
import type { Decision, Outcome } from '../../server/console/wire.ts';
import { type Exchange, unmatched } from '../../server/http/exchange.ts';
import { showText } from '../../shown-text.ts';

const requestIdForm = /^[\w.:-]{1,128}$/;
/** Maximum length of a method. Every registered method is shorter. */
const maxMethod = 20;

/** Describes one request without its credentials and identity. */
export function describeDecision(exchange: Exchange, status: number, milliseconds: number): Decision {
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
