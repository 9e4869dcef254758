import type { ReadClientAddress } from '../../http/client-address.ts';
import type { Exchange } from '../http/exchange.ts';
import type { DescribeIdentity } from './identity.ts';
import type { Log, LogFields } from './log.ts';
import { describeRefusal } from './refusal-facts.ts';
import { readTraceId } from './traces.ts';

/** What the lines of requests are made with. */
export interface RequestLogOptions {
  readonly log: Log;
  readonly readClientAddress: ReadClientAddress;
  readonly describeIdentity: DescribeIdentity;
  /** Which admitted calls are logged: all, none, or one in so many. */
  readonly grants: 'all' | 'none' | number;
}

/** Writes the line of an answered request. */
export type WriteRequestLine = (exchange: Exchange, status: number, milliseconds: number) => void;

const requestIdForm = /^[\w.:-]{1,128}$/;

/** Creates the writer of request lines. Refused and failed calls are always written. */
export function createRequestLog(options: RequestLogOptions): WriteRequestLine {
  const { log, readClientAddress, describeIdentity, grants } = options;
  const every = grants === 'all' ? 1 : grants === 'none' ? 0 : grants;
  let admitted = 0;
  return (exchange, status, milliseconds) => {
    const { id, request, connection, route, routeKind, reason, wouldRefuse } = exchange;
    const isGranted = reason === undefined && wouldRefuse === undefined && status < 400;
    if (isGranted && (every === 0 || admitted++ % every !== 0)) return;
    const sent = request.headers.get('x-request-id');
    log.writeRequest({
      time: Date.now(),
      id,
      requestId: sent !== null && requestIdForm.test(sent) ? sent : undefined,
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
  describeIdentity: DescribeIdentity,
): LogFields | undefined {
  // A token that was refused names its owner only if its issuer has vouched for it.
  const owner = claims ?? evidence?.claims;
  const identity = owner === undefined ? undefined : describeIdentity(owner);
  const refusal = evidence === undefined ? undefined : describeRefusal(evidence);
  if (context === undefined && cause === undefined && identity === undefined && refusal === undefined) return undefined;
  return { ...identity, ...refusal, ...context, ...(cause !== undefined && { cause: describeCause(cause) }) };
}

/** The name and message of an error of this program's own making; never of input. */
function describeCause(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'not an error';
}
