import { randomBytes } from 'node:crypto';
import type { Span } from '@opentelemetry/api';
import { type Evidence, findEvidence } from '../../check.ts';
import { AccessError, type FailureContext, type Reason } from '../../failures.ts';
import { readScheme } from '../../http/credentials.ts';
import type { Connection, ResourceRequest } from '../../http/request.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import { nameHint, type SettingNames } from '../settings/setting-names.ts';
import { unmatched } from './unmatched.ts';

/** One request, and what happened to it: for the answer, the log line and the metrics. */
export interface Exchange {
  /** Finds the log line of a refused request: sent along in X-Request-Id. */
  readonly id: string;
  /** For the gate: the request that it is asked about. */
  request: ResourceRequest;
  readonly connection: Connection;
  /** Milliseconds on the clock of `performance.now()`. */
  readonly startedAt: number;
  /** Path of the route that matched, never the path as it was sent; or the id of a rule. */
  route: string;
  /** What {@link Exchange.route} is called in the log. */
  routeKind: 'route' | 'rule';
  /** Why it was refused. */
  reason: Reason | undefined;
  /** Why it would have been refused, if its rule did not only report. */
  wouldRefuse: Reason | undefined;
  /** Facts for the operator. */
  context: FailureContext | undefined;
  /** What it was refused with. */
  evidence: Evidence | undefined;
  /** What went wrong, where the reason is `unexpected` or something could not be reached. */
  cause: unknown;
  /** What the token of an admitted request says. */
  claims: RegisteredClaims | undefined;
  /** The scheme of a request that was judged: also of one that was refused, if it has named a known one. */
  scheme: 'Bearer' | 'DPoP' | undefined;
  /** Of whoever has registered an OpenTelemetry SDK. */
  span: Span | undefined;
}

/** Random characters of an id, 6 bits each. Below 13, V8 copies a part of the pool instead of keeping the pool alive. */
const idLength = 12;
/** Random characters for 512 ids: one call of the generator for each id would cost more than the id. */
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

/** Begins an exchange. */
export function beginExchange(request: ResourceRequest, connection: Connection): Exchange {
  return {
    id: idPrefix + takeRandom(),
    request,
    connection,
    startedAt: performance.now(),
    route: unmatched,
    routeKind: 'route',
    reason: undefined,
    wouldRefuse: undefined,
    context: undefined,
    evidence: undefined,
    cause: undefined,
    claims: undefined,
    scheme: undefined,
    span: undefined,
  };
}

/** Notes why a request was refused; what is no `AccessError` is a defect of this program. */
export function noteRefusal(exchange: Exchange, error: unknown, names: SettingNames): void {
  const refused = error instanceof AccessError;
  exchange.reason = refused ? error.reason : 'unexpected';
  exchange.context = refused ? nameHint(error.context, names) : undefined;
  exchange.evidence = refused ? findEvidence(error) : undefined;
  exchange.cause = refused ? error.cause : error;
  // The request of the gate is the one that it was asked about.
  exchange.scheme = readScheme(exchange.request.headers.get('authorization') ?? '');
}

/** Notes why a request that passes would have been refused. */
export function noteWouldRefuse(exchange: Exchange, error: unknown, names: SettingNames): void {
  noteRefusal(exchange, error, names);
  exchange.wouldRefuse = exchange.reason;
  exchange.reason = undefined;
}
