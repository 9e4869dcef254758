import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Span } from '@opentelemetry/api';
import { normaliseUrl } from '../../core/dpop/htu.ts';
import { AccessError, type FailureContext, type Reason } from '../../core/failures.ts';
import { readScheme } from '../../core/http/credentials.ts';
import type { Connection, ResourceRequest } from '../../core/http/request.ts';
import { type ErrorBodyFormat, statusPhrases } from '../../core/refusal/error-body.ts';
import type { Refusal } from '../../core/refusal/refusal.ts';
import { type Evidence, Refused } from '../../core/refused.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { nameHint, type SettingNames } from '../settings/setting-names.ts';

/** Maximum size of the target and the headers of a request. */
export const maxHeaderBytes: number = 32 * 1024;

/** Finds the status of a request that every listener refuses before it reads the path; `undefined` if it reads the path. */
export function findHeadRefusal({ url, target = url, headers }: ResourceRequest): 417 | 431 | undefined {
  const lengths = Array.from(headers.entries?.() ?? [], ([name, value]) => name.length + value.length);
  // The target and the headers have one limit.
  if (lengths.reduce((sum, length) => sum + length, target.length) > maxHeaderBytes) return 431;
  return /^(?:100-continue)?$/i.test(headers.get('expect') ?? '') ? undefined : 417;
}

/** Route of requests without a rule or an endpoint, in logs and metrics. */
export const unmatched: string = 'unmatched';

/** One request and what is known of it. A class, because each request has one. */
export class Exchange {
  /** Id of the log line. A refused client gets it in X-Request-Id. */
  readonly id = idPrefix + takeRandom();
  /** For the gate beside a proxy: the request that the proxy describes. */
  request: ResourceRequest;
  readonly connection: Connection;
  /** Milliseconds on the clock of `performance.now()`. */
  readonly startedAt = performance.now();
  /** Path of the matching route, never the path of the request; or the id of a rule. */
  route = unmatched;
  routeKind: 'route' | 'rule' = 'route';
  reason: Reason | undefined;
  /** The reason, if its rule is in report mode. */
  wouldRefuse: Reason | undefined;
  context: FailureContext | undefined;
  evidence: Evidence | undefined;
  /** The error, if the reason is `unexpected` or an outbound request failed. */
  cause: unknown;
  claims: RegisteredClaims | undefined;
  /** Granted scopes of an admitted request. */
  scopes: ReadonlySet<string> | undefined;
  /** The scheme of an admitted request, or the known scheme that a refused request names. */
  scheme: 'Bearer' | 'DPoP' | undefined;
  span: Span | undefined;
  /** Facts for the audit trail; `undefined` if no decision was made, as for a public endpoint. */
  audited: AuditedFacts | undefined;

  constructor(request: ResourceRequest, connection: Connection) {
    this.request = request;
    this.connection = connection;
  }
}

/** Facts of the endpoint or of the rules that decided. One object for many requests. */
export interface AuditedFacts {
  /** Names of the entries that the rule names, by `iss`: at most one for each. */
  readonly entries?: ReadonlyMap<unknown, string>;
  /** SHA-256 of the active rules, hex. */
  readonly rules?: string | undefined;
}

/** Random characters of an id, 6 bits each. Below 13, V8 copies a part of the pool instead of keeping the pool alive. */
const idLength = 12;
/** Random bytes for 512 ids: the generator is slow for few bytes. */
const poolBytes = 512 * idLength * 0.75;
let pool = '';
let taken = 0;
/** Ids of one process begin with the same characters. */
const idPrefix = `${takeRandom().slice(0, 6)}-`;

/** Takes the random part of an id: a client cannot predict it from the ids that it has seen. */
function takeRandom(): string {
  if (taken === pool.length) {
    pool = randomBytes(poolBytes).toString('base64url').replaceAll('-', 'A').replaceAll('_', 'B');
    taken = 0;
  }
  taken += idLength;
  return pool.slice(taken - idLength, taken);
}

/** Notes the reason of a refusal. An error that is not an `AccessError` is a defect of this program. */
export function noteRefusal(exchange: Exchange, error: unknown, names: SettingNames): void {
  const refused = error instanceof AccessError;
  exchange.reason = refused ? error.reason : 'unexpected';
  exchange.context = refused ? nameHint(error.context, names) : undefined;
  exchange.evidence = error instanceof Refused ? error.evidence : undefined;
  exchange.cause = refused ? error.cause : error;
  exchange.scheme = readScheme(exchange.request.headers.get('authorization') ?? '');
}

/** Notes the reason for which a rule in report mode would have refused the request. */
export function noteWouldRefuse(exchange: Exchange, error: unknown, names: SettingNames): void {
  noteRefusal(exchange, error, names);
  exchange.wouldRefuse = exchange.reason;
  exchange.reason = undefined;
}

/** Refuses a request before a route or rule is searched, and notes the reason. */
export type Refuse = (exchange: Exchange, error: AccessError) => Answer;

export function createRefuse(
  names: SettingNames,
  describe: (error: AccessError, exchange: Exchange) => Refusal,
): Refuse {
  return (exchange, error) => {
    noteRefusal(exchange, error, names);
    return answerRefusal(describe(error, exchange));
  };
}

/** One side of a tunnel: its connection, and the bytes that were read before the tunnel existed. */
export interface TunnelEnd {
  readonly socket: Socket;
  readonly head: Buffer;
}

/** Detaches the connection of an upgrade request, for a tunnel to this connection to the upstream. */
export type TakeSocket = (upstream: Socket) => TunnelEnd;

/** Request and response as streams, for an app that forwards them. */
export interface Wire {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Present if the client requests an upgrade. */
  readonly takeSocket: TakeSocket | undefined;
  /** Called before the request is forwarded. */
  onForward(): void;
  /** Called after the last byte of the response. */
  onDone(): void;
}

/** The app sends the response itself, and calls `onDone`. */
export const passedOn = Symbol('passed on');

/** Responds to a request. Never rejects. */
export type App = (exchange: Exchange, target: string) => Promise<Answer>;

/** Responds to a request, or forwards it. Throws nothing. */
export type StreamApp = (
  exchange: Exchange,
  target: string,
  wire: Wire,
) => Answer | typeof passedOn | Promise<Answer | typeof passedOn>;

const anyOrigin = 'http://localhost';

/**
 * Creates a router of exact paths, for a request target: a path with a query, or a complete URL. Other targets are malformed.
 * `/a/` and `/A` are not `/a`; equivalent spellings of RFC 3986 §6.2.2 are.
 */
export function createRouter<R extends { readonly path: string }>(routes: readonly R[]) {
  const byPath: ReadonlyMap<string, R> = new Map(routes.map((route) => [route.path, route]));
  return (target: string): R | 'not_found' | 'malformed' => {
    const query = target.indexOf('?');
    const route = byPath.get(query < 0 ? target : target.slice(0, query));
    if (route !== undefined) return route;
    const url = normaliseUrl(target.startsWith('/') ? anyOrigin + target : target);
    if (url === undefined) return 'malformed';
    return byPath.get(url.slice(url.indexOf('/', url.indexOf('//') + 2))) ?? 'not_found';
  };
}

/** Limits of what is discarded after a response: many clients read it only after they have sent their body. */
export const discardLimits = { bytes: 64 * 1024 * 1024, milliseconds: 30_000 } as const;

/**
 * Discards the rest of a body, within limits, after its response was sent early. An immediate close would reset the
 * connection, and the client could lose the response.
 */
export function discardRest(incoming: IncomingMessage): void {
  if (incoming.complete || incoming.destroyed) return;
  const { socket } = incoming;
  let left: number = discardLimits.bytes;
  const deadline = setTimeout(() => socket.destroy(), discardLimits.milliseconds);
  const done = (): void => clearTimeout(deadline);
  incoming.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) socket.destroy();
  });
  incoming.once('end', done).once('close', done).resume();
}

/** Header names in lower case, each followed by its value. Node sends an array faster than an object. */
export type HeaderList = readonly string[];

/** The header with the id of the log line. */
const requestIdHeader = 'x-request-id';

/** A response. */
export class Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string;
  /** `latin1` for ASCII: it is copied, not encoded. */
  readonly encoding: 'latin1' | 'utf8';

  constructor(status: number, headers: HeaderList, body: string) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.encoding = Buffer.byteLength(body) === body.length ? 'latin1' : 'utf8';
  }

  with(...more: HeaderList): Answer {
    return new Answer(this.status, [...this.headers, ...more], this.body);
  }
}

export function createAnswer(status: number, headers: HeaderList, body: string): Answer {
  return new Answer(status, [...headers, 'content-length', String(Buffer.byteLength(body))], body);
}

export function answerRefusal({ status, headers, body }: Refusal, ...more: HeaderList): Answer {
  return createAnswer(status, [...Object.entries(headers).flat(), ...more], body);
}

/** Creates an error of HTTP, in the configured form. */
export function plainError(errorBody: ErrorBodyFormat, status: number): Answer {
  const { contentType, body } = errorBody({ status, description: statusPhrases.get(status) ?? 'Error' });
  return createAnswer(status, ['content-type', contentType], body);
}

/** Sends a response; Node omits the body of a response to HEAD. `requestId`: id of the log line, for a refused request. */
export function sendAnswer(answer: Answer, outgoing: ServerResponse, requestId?: string): void {
  const { status, headers, body, encoding } = answer;
  const all = requestId === undefined ? headers : [...headers, requestIdHeader, requestId];
  outgoing.writeHead(status, all as string[]); // Node only reads them
  outgoing.end(body, encoding);
}

/** A method, or the name of a header (RFC 9110 §5.6.2). */
export const token = /^[\w!#$%&'*+.^`|~-]{1,2048}$/;

/** Allows the headers that a preflight names (Fetch Standard); no header if they are not a list, or are too long. */
export function allowRequestedHeaders(request: ResourceRequest): HeaderList {
  const names = request.headers.get('access-control-request-headers') ?? '';
  const isList = names.length <= 2048 && names.split(',').every((name) => token.test(name.trim()));
  return isList ? ['access-control-allow-headers', names] : [];
}
