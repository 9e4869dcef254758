import { showText } from '../../explain/shown-text.ts';
import type { Decision, Outcome } from '../../server/console/wire.ts';
import type { Exchange } from '../../server/http/exchange.ts';

const requestIdForm = /^[\w.:-]{1,128}$/;
/** Characters of a method: no method that is registered has more. */
const maxMethod = 20;

/** What is streamed of one request: neither what it carried nor whose it was. */
export function describeDecision(exchange: Exchange, status: number, milliseconds: number): Decision {
  const { id, request, route, routeKind, reason, wouldRefuse, scheme } = exchange;
  const sent = request.headers.get('x-request-id');
  const why = reason ?? wouldRefuse;
  return {
    id,
    ...(sent !== null && requestIdForm.test(sent) && { requestId: sent }),
    at: new Date().toISOString(),
    method: showText(request.method, maxMethod),
    route,
    routeKind,
    status,
    outcome: readOutcome(exchange, status),
    ...(why !== undefined && { reason: why }),
    ...(scheme !== undefined && { scheme }),
    ms: Math.round(milliseconds * 1000) / 1000,
  };
}

function readOutcome({ reason, wouldRefuse }: Exchange, status: number): Outcome {
  if (reason !== undefined) return 'refused';
  if (wouldRefuse !== undefined) return 'would_refuse';
  return status < 400 ? 'allowed' : 'other';
}
