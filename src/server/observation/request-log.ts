import type { DescribeIdentity } from '../../audit/identity.ts';
import type { ReadClientAddress } from '../../http/peer.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Log, LogFields } from './log.ts';
import { describeRefusal } from './refusal-facts.ts';
import { readRequestId, readTraceId } from './traces.ts';

export interface RequestLogOptions {
  readonly log: Log;
  readonly readClientAddress: ReadClientAddress;
  /** `undefined`: lines name no identity. */
  readonly describeIdentity: DescribeIdentity | undefined;
}

export type WriteRequestLine = (exchange: Exchange, status: number, milliseconds: number) => void;

/** Creates the writer of request lines. Refused and failed requests are always written. */
export function createRequestLog(options: RequestLogOptions): WriteRequestLine {
  const { log, readClientAddress, describeIdentity } = options;
  let admitted = 0;
  return (exchange, status, milliseconds) => {
    const { id, request, connection, route, routeKind, reason, wouldRefuse } = exchange;
    const isGranted = reason === undefined && wouldRefuse === undefined && status < 400;
    if (isGranted) {
      const interval = log.grantInterval();
      if (interval === 0 || admitted++ % interval !== 0) return;
    }
    log.writeRequest({
      time: Date.now(),
      id,
      requestId: readRequestId(request),
      traceId: readTraceId(exchange),
      clientIp: readClientAddress(request, connection),
      method: request.method,
      route,
      routeKind,
      status,
      reason,
      wouldRefuse,
      milliseconds: Math.round(milliseconds * 1000) / 1000,
      facts: describeFacts(exchange, describeIdentity),
    });
  };
}

function describeFacts(
  { context, evidence, cause, claims }: Exchange,
  describeIdentity: DescribeIdentity | undefined,
): LogFields | undefined {
  // A refused token names its subject only if its signature was verified.
  const verified = claims ?? evidence?.claims;
  const identity = verified === undefined ? undefined : describeIdentity?.(verified);
  const refusal = evidence === undefined ? undefined : describeRefusal(evidence);
  if (context === undefined && cause === undefined && identity === undefined && refusal === undefined) return undefined;
  return { ...identity, ...refusal, ...context, ...(cause !== undefined && { cause: describeCause(cause) }) };
}

/** Name and message of an error. Errors of this program have no input in their messages. */
function describeCause(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'not an error';
}
