import type { IncomingMessage, ServerResponse } from 'node:http';
import { readNodeRequest } from '../../adapters/node-request.ts';
import { failures } from '../../core/failures.ts';
import type { ReadClientAddress, ReadExternalUrl } from '../../core/http/external-url.ts';
import { readSentPath } from '../../core/http/request.ts';
import { type Evidence, Refused } from '../../core/refused.ts';
import type { Audit } from '../../core/resource-server/audit.ts';
import { readRequestId } from '../../core/resource-server/events.ts';
import { type Disguise, show, showComparison } from '../../core/shown-comparison.ts';
import {
  discardRest,
  Exchange,
  passedOn,
  type Refuse,
  type StreamApp,
  sendAnswer,
  type TakeSocket,
  type Wire,
} from '../http/exchange.ts';
import type { DescribeIdentity } from './audit/identity.ts';
import type { Log, LogFields } from './log.ts';
import { escapeLabel, type Metrics } from './metrics.ts';
import { endRequestSpan, readTraceId, traceRequest } from './traces.ts';

/** Called after each response. */
export type WatchRequest = (exchange: Exchange, status: number, milliseconds: number) => void;

interface ObserveOptions {
  readonly app: StreamApp;
  /** Refuses a request before the app receives it. */
  readonly refuse: Refuse;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly readClientAddress: ReadClientAddress;
  readonly readExternalUrl: ReadExternalUrl;
  /** `undefined`: lines name no identity. */
  readonly describeIdentity: DescribeIdentity | undefined;
  /** Default: values of conditions are hashed under a key of this process. */
  readonly disguise?: Disguise | undefined;
  readonly audit: Audit | undefined;
  readonly watch: WatchRequest | undefined;
}

/** Adds sockets, one log line, one audit line, one span and the request metrics to an app. */
export function observe(options: ObserveOptions) {
  const { app, refuse, audit, watch } = options;
  const count = countRequests(options.metrics);
  const writeLine = createRequestLog(options);
  /** Writes the audit line of a request. `status`: `undefined` before its response. */
  const writeAudit = (exchange: Exchange, status: number | undefined): void => {
    addAuditLine(exchange, status, options);
    audit?.write();
  };
  const record = (exchange: Exchange, status: number): void => {
    const milliseconds = performance.now() - exchange.startedAt;
    count.end(exchange, status, milliseconds / 1000);
    writeLine(exchange, status, milliseconds);
    watch?.(exchange, status, milliseconds);
    endRequestSpan(exchange, status);
  };

  /** A pending request. A class, because each request has one. */
  class PendingRequest implements Wire {
    readonly exchange: Exchange;
    readonly incoming: IncomingMessage;
    readonly outgoing: ServerResponse;
    readonly takeSocket: TakeSocket | undefined;

    constructor(incoming: IncomingMessage, outgoing: ServerResponse, takeSocket: TakeSocket | undefined) {
      this.exchange = new Exchange(readNodeRequest(incoming), incoming.socket);
      this.incoming = incoming;
      this.outgoing = outgoing;
      this.takeSocket = takeSocket;
    }

    onForward(): void {
      writeAudit(this.exchange, undefined);
    }

    onDone(): void {
      record(this.exchange, readStatus(this.outgoing));
    }
  }

  type Work = (exchange: Exchange, pending: PendingRequest) => ReturnType<StreamApp>;
  const work: Work = (exchange, pending) => app(exchange, pending.incoming.url ?? '', pending);
  const refuseExpectation: Work = (exchange, { outgoing }) => {
    // The body is not read and may still arrive, so the next request could not be found.
    outgoing.shouldKeepAlive = false;
    return refuse(exchange, new Refused('unmet_expectation'));
  };
  const serve = async (pending: PendingRequest, decide: Work): Promise<void> => {
    count.begin();
    const { exchange, incoming, outgoing } = pending;
    const answer = await traceRequest(exchange, decide, pending);
    if (answer === passedOn) return;
    const { status } = answer;
    writeAudit(exchange, status);
    // A client that reports a refusal can name the id of the log line.
    sendAnswer(answer, outgoing, status < 400 && exchange.routeKind === 'route' ? undefined : exchange.id);
    discardRest(incoming);
    record(exchange, status);
  };
  return {
    onRequest: (incoming: IncomingMessage, outgoing: ServerResponse) =>
      void serve(new PendingRequest(incoming, outgoing, undefined), work),
    /** Responds to an `Expect` other than `100-continue`. */
    onExpectation: (incoming: IncomingMessage, outgoing: ServerResponse) =>
      void serve(new PendingRequest(incoming, outgoing, undefined), refuseExpectation),
    serveUpgrade: (incoming: IncomingMessage, outgoing: ServerResponse, takeSocket: TakeSocket) =>
      void serve(new PendingRequest(incoming, outgoing, takeSocket), work),
  };
}

/** nginx's status for a client that disconnects before the response. */
const clientDisconnected = 499;
const switchingProtocols = 101;

function readStatus({ headersSent, statusCode }: ServerResponse): number {
  return headersSent || statusCode === switchingProtocols ? statusCode : clientDisconnected;
}

const schemes = ['none', 'Bearer', 'DPoP'];

/** Registers the metrics of requests. Labels are bounded: routes or rules, statuses, schemes, reasons and configured issuers. */
function countRequests(metrics: Metrics) {
  const help = 'Requests by route or rule, status, scheme and issuer.';
  const requests = metrics.counter('portcullis_requests_total', help);
  const refusals = metrics.counter('portcullis_refusals_total', 'Refused requests by reason and issuer.');
  const latency = metrics.histogram('portcullis_request_seconds', 'Time from request to response, by route or rule.');
  let inFlight = 0;
  metrics.gauge('portcullis_requests_in_flight', 'Pending requests.', () => inFlight);
  // A series that begins with its first refusal has no rate at that time, so each begins at 0.
  for (const reason of Object.keys(failures)) refusals.series(`{reason="${reason}",issuer=""}`);

  const findRequests = createFinder<ReturnType<typeof requests.series>>();
  const findRefusals = createFinder<ReturnType<typeof refusals.series>>();
  const findLatency = createFinder<ReturnType<typeof latency.series>>();
  return {
    begin(): void {
      inFlight++;
    },
    end(exchange: Exchange, status: number, seconds: number): void {
      inFlight--;
      const { route, routeKind, reason, scheme = 'none' } = exchange;
      const issuer = readIssuer(exchange);
      findLatency([route, routeKind, ''], () => latency.series(`{${routeKind}="${route}"}`)).observe(seconds);
      // A number is found faster than a string that is put together.
      findRequests([route, status * 4 + schemes.indexOf(scheme), issuer], () => {
        const labels = `${routeKind}="${route}",status="${status}",scheme="${scheme}",issuer="${escapeLabel(issuer)}"`;
        return requests.series(`{${labels}}`);
      }).value++;
      if (reason === undefined) return;
      findRefusals([reason, '', issuer], () => refusals.series(`{reason="${reason}",issuer="${escapeLabel(issuer)}"}`))
        .value++;
    },
  };
}

/** Finds a series without its label part: to format it for each request takes 0.6 µs. */
function createFinder<T>() {
  const known = new Map<string, Map<string | number, Map<string, T>>>();
  return ([one, two, three]: readonly [string, string | number, string], find: () => T): T => {
    const found = known.get(one)?.get(two)?.get(three);
    if (found !== undefined) return found;
    const series = find();
    const ones = known.get(one) ?? new Map<string | number, Map<string, T>>();
    const twos = ones.get(two) ?? new Map<string, T>();
    known.set(one, ones.set(two, twos.set(three, series)));
    return series;
  };
}

/** Only a verified token names a configured issuer. */
function readIssuer({ claims, evidence }: Exchange): string {
  const issuer = (claims ?? evidence?.claims)?.['iss'];
  return typeof issuer === 'string' ? issuer : '';
}

/** Creates the writer of request lines. Refused and failed requests are always written. */
function createRequestLog(options: ObserveOptions): WatchRequest {
  const { log, readClientAddress } = options;
  return (exchange, status, milliseconds) => {
    const { id, request, connection, route, routeKind, reason, wouldRefuse } = exchange;
    if (reason === undefined && wouldRefuse === undefined && status < 400 && !log.logsGrants()) return;
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
      facts: describeFacts(exchange, options),
    });
  };
}

function describeFacts(
  { context, evidence, cause, claims }: Exchange,
  { describeIdentity, disguise }: ObserveOptions,
): LogFields | undefined {
  // A refused token names its subject only if its signature was verified.
  const verified = claims ?? evidence?.claims;
  const identity = verified === undefined ? undefined : describeIdentity?.(verified);
  const refusal = evidence === undefined ? undefined : describeRefusal(evidence, disguise);
  if (context === undefined && cause === undefined && identity === undefined && refusal === undefined) return undefined;
  return { ...identity, ...refusal, ...context, ...(cause !== undefined && { cause: describeCause(cause) }) };
}

/** Name and message of an error. Errors of this program have no input in their messages. */
function describeCause(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'not an error';
}

const maxKid = 64;

/** Describes the expected and the received value, and the `kid`: escaped and of bounded length. */
export function describeRefusal({ compare, kid }: Evidence, disguise?: Disguise): LogFields {
  const facts = compare?.();
  return {
    ...(facts !== undefined && showComparison(facts, disguise)),
    ...(kid !== undefined && { kid: show(kid, maxKid) }),
  };
}

/** Adds the line of a request, unless no decision was made or the audit trail refused it. */
function addAuditLine(
  exchange: Exchange,
  status: number | undefined,
  { audit, readClientAddress, readExternalUrl }: ObserveOptions,
): void {
  const { audited, reason, wouldRefuse, request, connection, route, routeKind, claims, scopes, evidence } = exchange;
  if (audit === undefined || audited === undefined || reason === 'audit_unavailable') return;
  const verified = claims ?? evidence?.claims;
  const url = readExternalUrl(request, connection);
  audit.add({
    id: exchange.id,
    requestId: readRequestId(request),
    traceId: readTraceId(exchange),
    decision: reason !== undefined ? 'refused' : wouldRefuse !== undefined ? 'would_refuse' : 'admitted',
    reason: reason ?? wouldRefuse,
    method: request.method,
    route: routeKind === 'route' ? route : undefined,
    rule: routeKind === 'rule' ? route : undefined,
    // The host that rules compare.
    host: url instanceof Refused ? (request.headers.get('host') ?? undefined) : url.origin.replace(/^.*\//, ''),
    path: readSentPath(request),
    status,
    claims: verified,
    entry: audited.entries?.get(verified?.['iss']),
    scopes: scopes ?? evidence?.scopes,
    scheme: exchange.scheme,
    rules: audited.rules,
    clientIp: readClientAddress(request, connection),
  });
}
