import type { IncomingMessage, RequestListener } from 'node:http';
import { isIP } from 'node:net';
import { attempt } from '../../core/attempt.ts';
import type { ErrorBodyFormat } from '../../core/refusal/error-body.ts';
import {
  type Answer,
  createAnswer,
  createRouter,
  discardRest,
  type HeaderList,
  plainError,
  sendAnswer,
} from '../http/exchange.ts';

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, or the problem, by part of the service. */
  readonly checks: Readonly<Record<string, string>>;
  /** Parts that fail while the service is still useful. */
  readonly degraded?: readonly string[];
}

/** Adds the problems of parts that fail while the service is still useful. */
export function addDegraded(readiness: Readiness, problems: Readonly<Record<string, string>>): Readiness {
  const names = Object.keys(problems);
  if (names.length === 0) return readiness;
  const { checks, degraded = [] } = readiness;
  return { ...readiness, checks: { ...checks, ...problems }, degraded: [...degraded, ...names] };
}

export interface AdminOptions {
  readonly errorBody: ErrorBodyFormat;
  /** Names, in lower case, that `/metrics` accepts in addition to IP literals and loopback names. */
  readonly hosts: readonly string[];
  readonly readiness: () => Readiness;
  readonly metrics: () => string;
  readonly assertionKeys: (() => Answer | undefined) | undefined;
  /** Serves `POST /revocations`. `undefined`: 404. */
  readonly revoke: RequestListener | undefined;
  /** Serves `/console` and paths below it. `undefined`: 404. */
  readonly console: RequestListener | undefined;
}

export const assertionKeysPath = '/.well-known/portcullis/jwks.json';

const json: HeaderList = ['content-type', 'application/json'];

/** Serves liveness, readiness and metrics. No authentication: bind the listener to loopback. */
export function createAdmin(options: AdminOptions): RequestListener {
  const { errorBody, hosts, readiness, metrics, assertionKeys, revoke, console } = options;
  const alive = createAnswer(200, json, JSON.stringify({ status: 'ok' }));
  const notFound = plainError(errorBody, 404);
  const misdirected = plainError(errorBody, 421);
  const failed = plainError(errorBody, 500);
  const describe = (): Answer => {
    const state = readiness();
    return createAnswer(state.ready ? 200 : 503, json, JSON.stringify(state));
  };
  const measure = (): Answer => createAnswer(200, ['content-type', 'text/plain; version=0.0.4'], metrics());
  const findRoute = createRouter([
    { path: '/healthz', hosts: 'any', respond: () => alive },
    { path: '/readyz', hosts: 'any', respond: describe },
    { path: '/metrics', hosts: 'known', respond: measure },
    { path: assertionKeysPath, hosts: 'any', respond: () => assertionKeys?.() ?? notFound },
  ]);
  const find = ({ method, url = '', headers }: IncomingMessage): Answer => {
    const route = method === 'GET' || method === 'HEAD' ? findRoute(url) : 'not_found';
    if (typeof route === 'string') return notFound;
    if (route.hosts === 'known' && !isKnownHost(headers.host, hosts)) return misdirected;
    return attempt(route.respond) ?? failed;
  };
  return (incoming, outgoing) => {
    const { url = '' } = incoming;
    if (console !== undefined && /^\/console(?:[/?]|$)/.test(url)) return console(incoming, outgoing);
    if (revoke !== undefined && /^\/revocations(?:\?|$)/.test(url)) return revoke(incoming, outgoing);
    sendAnswer(find(incoming), outgoing);
    discardRest(incoming);
  };
}

/** A page in a local browser can point its own name to this listener (DNS rebinding), but not an address or a name of this host. */
function isKnownHost(header: string | undefined, hosts: readonly string[]): boolean {
  const name = header?.toLowerCase().replace(/:\d*$/, '') ?? '';
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  return /(?:^|\.)localhost$/.test(name) || hosts.includes(name);
}
