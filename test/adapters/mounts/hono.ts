import { type Context, type Env, Hono } from 'hono';
import { answerAccessErrors, createAuthorize } from '../../../src/adapters/hono.ts';
import type { Connection } from '../../../src/core/http/request.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** The transport under a request, as the runtime names it. */
type ReadConnection<E extends Env> = (c: Context<E>) => Connection;

/** The routes of the scene in an application that is mounted at the root of another, and below the prefix. */
export function createHonoApp<E extends Env>(stage: Stage, connection: ReadConnection<E>): Hono<E> {
  const inner = new Hono<E>();
  mount(inner, stage, connection);
  return answerErrors(new Hono<E>().route('/', inner).route(prefix, inner), stage);
}

/** The same routes in one application, which has them below a base path as well. */
export function createHonoBasePathApp<E extends Env>(stage: Stage, connection: ReadConnection<E>): Hono<E> {
  const root = new Hono<E>();
  mount(root, stage, connection);
  mount(root.basePath(prefix) as Hono<E>, stage, connection); // only its types know the prefix
  return answerErrors(root, stage);
}

function mount<E extends Env>(app: Hono<E>, { servers, onRefused }: Stage, connection: ReadConnection<E>): void {
  for (const { path, server, policy, behaviour } of routes) {
    const authorize = createAuthorize<E>(servers[server], { connection, onRefused });
    app.get(path, authorize(policy), (c) => behave(behaviour, () => c.json(describeAccess(c.var.access))));
  }
}

function answerErrors<E extends Env>(app: Hono<E>, { servers }: Stage): Hono<E> {
  const otherwise = (error: Error, c: Context): Response => c.text(textOf(error), 500);
  return app.onError(answerAccessErrors<E>(servers.usual, { otherwise }));
}
