import type { Audit } from '../../audit/audit.ts';
import type { ReadClientAddress } from '../../http/peer.ts';
import type { Exchange } from '../http/exchange.ts';
import { readRequestId, readTraceId } from './traces.ts';

/** Adds the line of a request, unless no decision was made or the audit trail refused it. */
export function addAuditLine(
  audit: Audit,
  exchange: Exchange,
  { status, readClientAddress }: { readonly status: number | undefined; readonly readClientAddress: ReadClientAddress },
): void {
  const { audited, reason, wouldRefuse, request, connection, route, routeKind, claims, evidence } = exchange;
  if (audited === undefined || reason === 'audit_unavailable') return;
  audit.add({
    id: exchange.id,
    requestId: readRequestId(request),
    traceId: readTraceId(exchange),
    decision: reason !== undefined ? 'refused' : wouldRefuse !== undefined ? 'would_refuse' : 'admitted',
    reason: reason ?? wouldRefuse,
    method: request.method,
    route: routeKind === 'route' ? route : undefined,
    rule: routeKind === 'rule' ? route : undefined,
    host: request.headers.get('host') ?? undefined,
    status,
    claims: claims ?? evidence?.claims,
    requiredScopes: audited.requiredScopes,
    scheme: exchange.scheme,
    rules: audited.rules,
    clientIp: readClientAddress(request, connection),
  });
}
