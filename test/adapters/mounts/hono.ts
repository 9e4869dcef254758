import { type Context, type Env, Hono } from 'hono';
import { createProtect } from '../../../src/adapters/hono.ts';
import type { Connection } from '../../../src/http/request.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** The transport under a request, as the runtime names it. */
type ReadConnection<E extends Env> = (c: Context<E>) => Connection;

/** The routes of the scene in an application that is mounted at the root of another, and below the prefix. */
export function createHonoApp<E extends Env>({ servers, onRefused }: Stage, connection: ReadConnection<E>): Hono<E> {
  const inner = new Hono<E>();
  for (const { path, server, policy, behaviour } of routes) {
    const protect = createProtect<E>(servers[server], { connection, onRefused });
    inner.get(
      path,
      protect(policy, (c, access) => behave(behaviour, () => c.json(describeAccess(access)))),
    );
  }
  const app = new Hono<E>().route('/', inner).route(prefix, inner);
  return app.onError((error, c) => c.text(textOf(error), 500));
}

/** The same routes in one application, which has them below a base path as well. */
export function createHonoBasePathApp<E extends Env>(stage: Stage, connection: ReadConnection<E>): Hono<E> {
  const { servers, onRefused } = stage;
  const root = new Hono<E>();
  for (const app of [root, root.basePath(prefix)]) {
    for (const { path, server, policy, behaviour } of routes) {
      const protect = createProtect<E>(servers[server], { connection, onRefused });
      app.get(
        path,
        protect(policy, async (c, access) => behave(behaviour, () => c.json(describeAccess(access)))),
      );
    }
  }
  return root.onError((error, c) => c.text(textOf(error), 500));
}
