import type { RequestListener } from 'node:http';
import type { ErrorBodyFormat } from '../../refusal/error-body.ts';
import { type Answer, createAnswer, type HeaderList, plainError, sendAnswer } from './answer.ts';
import { createRouter } from './router.ts';

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

const json: HeaderList = ['content-type', 'application/json'];

/** Answers on the admin listener: liveness, readiness, metrics. No authentication: bind it to loopback. */
export function createAdmin({ readiness, metrics }: AdminSources, errorBody: ErrorBodyFormat): RequestListener {
  const alive = createAnswer(200, json, JSON.stringify({ status: 'ok' }));
  const failed = plainError(errorBody, 500);
  const findRoute = createRouter([
    { path: '/healthz', respond: async (): Promise<Answer> => alive },
    {
      path: '/readyz',
      respond: async () => {
        const state = await readiness();
        return createAnswer(state.ready ? 200 : 503, json, JSON.stringify(state));
      },
    },
    {
      path: '/metrics',
      respond: async () => createAnswer(200, ['content-type', 'text/plain; version=0.0.4'], await metrics()),
    },
  ]);
  const notFound = plainError(errorBody, 404);
  return (incoming, outgoing) => {
    const isRead = incoming.method === 'GET' || incoming.method === 'HEAD';
    const route = isRead ? findRoute(incoming.url ?? '') : 'not_found';
    if (typeof route === 'string') return sendAnswer(notFound, outgoing);
    route.respond().then(
      (answer) => sendAnswer(answer, outgoing),
      () => sendAnswer(failed, outgoing),
    );
  };
}
