import type { RequestListener } from 'node:http';
import { isIP } from 'node:net';
import type { ErrorBodyFormat } from '../../refusal/error-body.ts';
import { type Answer, createAnswer, type HeaderList, plainError, sendAnswer } from '../http/answer.ts';
import { createRouter } from '../http/router.ts';

/** Whether requests should be sent here, and why not. */
export interface Readiness {
  readonly ready: boolean;
  /** `ok`, or what is missing, by part of the service. */
  readonly checks: Readonly<Record<string, string>>;
  /** Parts that do not work while the rest does; absent where everything does. */
  readonly degraded?: readonly string[];
}

/** Where the admin endpoints get their answers. */
export interface AdminSources {
  readonly readiness: () => Readiness | Promise<Readiness>;
  /** Prometheus text. */
  readonly metrics: () => string | Promise<string>;
}

/** How the admin endpoints answer. */
export interface AdminOptions {
  readonly errorBody: ErrorBodyFormat;
  /** Names, in lower case, under which `/metrics` answers besides IP literals and loopback names. */
  readonly hosts: readonly string[];
  /** Answers `/console` and what is below it. Default: 404. */
  readonly console?: RequestListener | undefined;
}

const json: HeaderList = ['content-type', 'application/json'];

/** Answers on the admin listener: liveness, readiness, metrics. No authentication: bind it to loopback. */
export function createAdmin(sources: AdminSources, { errorBody, hosts, console }: AdminOptions): RequestListener {
  const { readiness, metrics } = sources;
  const alive = createAnswer(200, json, JSON.stringify({ status: 'ok' }));
  const failed = plainError(errorBody, 500);
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
  ]);
  const notFound = plainError(errorBody, 404);
  const misdirected = plainError(errorBody, 421);
  return (incoming, outgoing) => {
    if (console !== undefined && /^\/console(?:[/?]|$)/.test(incoming.url ?? '')) return console(incoming, outgoing);
    const isRead = incoming.method === 'GET' || incoming.method === 'HEAD';
    const route = isRead ? findRoute(incoming.url ?? '') : 'not_found';
    if (typeof route === 'string') return sendAnswer(notFound, outgoing);
    if (route.hosts === 'known' && !isKnownHost(incoming.headers.host, hosts)) return sendAnswer(misdirected, outgoing);
    route.respond().then(
      (answer) => sendAnswer(answer, outgoing),
      () => sendAnswer(failed, outgoing),
    );
  };
}

/**
 * A page in the browser of somebody on this machine can make its own name point here (DNS rebinding), and read what
 * comes. It cannot do so with an address, or with the names of this machine.
 */
function isKnownHost(header: string | undefined, hosts: readonly string[]): boolean {
  const name = header?.toLowerCase().replace(/:\d*$/, '') ?? '';
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  return /(?:^|\.)localhost$/.test(name) || hosts.includes(name);
}
