import { createProtect } from '../../../src/adapters/fetch.ts';
import type { Connection } from '../../../src/core/http/request.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** Answers a request; `B` is what the runtime passes with it. */
export type FetchApp<B> = (request: Request, bindings: B) => Promise<Response>;

/** The routes of the scene in a handler from `Request` to `Response`, without a framework. */
export function createFetchApp<B>(
  { servers, onRefused }: Stage,
  connection: (request: Request, bindings: B) => Connection,
): FetchApp<B> {
  const handlers = new Map<string, (request: Request, bindings: B) => Response | Promise<Response>>();
  for (const { path, server, policy, behaviour } of routes) {
    const protect = createProtect(servers[server], { connection, onRefused });
    const handler = protect(policy, (_request, access, _bindings: B) =>
      behave(behaviour, () => Response.json(describeAccess(access))),
    );
    handlers.set(path, handler).set(`${prefix}${path}`, handler);
  }
  return async (request, bindings) => {
    try {
      // Not by `new URL`: workerd hands over requests whose URL is none.
      const path = /^https?:\/\/[^/]*(\/[^?#]*)/.exec(request.url)?.[1] ?? '';
      return (await handlers.get(path)?.(request, bindings)) ?? new Response(null, { status: 404 });
    } catch (error) {
      return new Response(textOf(error), { status: 500 });
    }
  };
}
