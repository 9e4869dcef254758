import type { RequestListener, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
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

export interface AdminSources {
  readonly readiness: () => Readiness | Promise<Readiness>;
  readonly metrics: () => string | Promise<string>;
  readonly assertionKeys?: (() => Answer | undefined) | undefined;
  /** Serves `POST /revocations`. Default: 404. */
  readonly revoke?: RequestListener | undefined;
}

export interface AdminOptions {
  readonly errorBody: ErrorBodyFormat;
  /** Names, in lower case, that `/metrics` accepts in addition to IP literals and loopback names. */
  readonly hosts: readonly string[];
  /** Serves `/console` and paths below it. Default: 404. */
  readonly console?: RequestListener | undefined;
}

export const assertionKeysPath = '/.well-known/portcullis/jwks.json';

const json: HeaderList = ['content-type', 'application/json'];

/** Serves liveness, readiness and metrics. No authentication: bind the listener to loopback. */
export function createAdmin(sources: AdminSources, { errorBody, hosts, console }: AdminOptions): RequestListener {
  const { readiness, metrics, assertionKeys } = sources;
  const alive = createAnswer(200, json, JSON.stringify({ status: 'ok' }));
  const failed = plainError(errorBody, 500);
  const notFound = plainError(errorBody, 404);
  const findRoute = createRouter([
    { path: '/healthz', hosts: 'any', respond: async (): Promise<Answer> => alive },
    {
      path: '/readyz',
      hosts: 'any',
      respond: async () => {
        const state = await readiness();
        return createAnswer(state.ready ? 200 : 503, json, JSON.stringify(state));
      },
    },
    {
      path: '/metrics',
      hosts: 'known',
      respond: async () => createAnswer(200, ['content-type', 'text/plain; version=0.0.4'], await metrics()),
    },
    { path: assertionKeysPath, hosts: 'any', respond: async () => assertionKeys?.() ?? notFound },
  ]);
  const misdirected = plainError(errorBody, 421);
  const send = (answer: Answer, outgoing: ServerResponse): void => {
    sendAnswer(answer, outgoing);
    discardRest(outgoing.req);
  };
  return (incoming, outgoing) => {
    if (console !== undefined && /^\/console(?:[/?]|$)/.test(incoming.url ?? '')) return console(incoming, outgoing);
    if (sources.revoke !== undefined && pathOf(incoming.url) === '/revocations')
      return sources.revoke(incoming, outgoing);
    const isRead = incoming.method === 'GET' || incoming.method === 'HEAD';
    const route = isRead ? findRoute(incoming.url ?? '') : 'not_found';
    if (typeof route === 'string') return send(notFound, outgoing);
    if (route.hosts === 'known' && !isKnownHost(incoming.headers.host, hosts)) return send(misdirected, outgoing);
    route.respond().then(
      (answer) => send(answer, outgoing),
      () => send(failed, outgoing),
    );
  };
}

const pathOf = (target = ''): string => target.replace(/\?.*$/s, '');

/** A page in a local browser can point its own name to this listener (DNS rebinding), but not an address or a name of this host. */
function isKnownHost(header: string | undefined, hosts: readonly string[]): boolean {
  const name = header?.toLowerCase().replace(/:\d*$/, '') ?? '';
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  return /(?:^|\.)localhost$/.test(name) || hosts.includes(name);
}
