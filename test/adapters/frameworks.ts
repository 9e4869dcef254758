import { createServer, type Server } from 'node:http';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import type { Reason } from '../../src/core/failures.ts';
import { listen } from '../support/listening.ts';
import { createExpressApp } from './mounts/express.ts';
import { createFastifyApp } from './mounts/fastify.ts';
import { createFetchApp } from './mounts/fetch.ts';
import { createHonoApp, createHonoBasePathApp } from './mounts/hono.ts';
import { createNestApp } from './mounts/nest.ts';
import { createNestFastifyApp } from './mounts/nest-fastify.ts';
import { createNodeApp } from './mounts/node.ts';
import { createStage, type Stage } from './mounts/stage.ts';
import type { SceneIssuer } from './scene.ts';

/** A framework with the routes of the scene, on a socket. */
export interface Running {
  readonly origin: string;
  /** The reasons of the requests that were refused so far, as they were told. */
  refused(): Promise<readonly Reason[]>;
  close(): Promise<void>;
}

/** Mounts a framework on a free loopback port; in this process, or on another runtime. */
export type Start = (issuer: SceneIssuer) => Promise<Running>;

/** Listens with the server of a framework. */
const on =
  (open: (stage: Stage) => Server | Promise<Server>): Start =>
  async (issuer) => {
    const stage = createStage(issuer);
    return { ...(await listen(await open(stage))), refused: async () => stage.refused };
  };

type Bindings = { readonly Bindings: HttpBindings };
type Adapted = Parameters<typeof createAdaptorServer>[0];

/** Node takes heads of 16 KiB, and a token alone may have as much. */
const maxHeaderSize = 32_768;

/** HTTP/1 unless told otherwise. */
const adapt = ({ fetch }: Pick<Adapted, 'fetch'>): Server =>
  createAdaptorServer({ fetch, serverOptions: { maxHeaderSize } }) as Server;

const fastify: Start = async (issuer) => {
  const stage = createStage(issuer);
  const app = createFastifyApp(stage);
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  return { origin, refused: async () => stage.refused, close: () => app.close() };
};

/** Every adapter, by name. */
export const frameworks = {
  node: on((stage) => createServer({ maxHeaderSize }, createNodeApp(stage))),
  express: on((stage) => createServer(createExpressApp(stage))),
  fastify,
  hono: on((stage) => adapt(createHonoApp<Bindings>(stage, (c) => c.env.incoming.socket))),
  'hono, basePath': on((stage) => adapt(createHonoBasePathApp<Bindings>(stage, (c) => c.env.incoming.socket))),
  fetch: on((stage) => {
    const app = createFetchApp<HttpBindings>(stage, (_request, { incoming }) => incoming.socket);
    // As Hono's own; the handler is called without Hono.
    return adapt({ fetch: app } as Adapted);
  }),
  nest: on(async (stage) => createServer(await createNestApp(stage))),
  'nest on Fastify': on(async (stage) => createServer(await createNestFastifyApp(stage))),
} as const satisfies Readonly<Record<string, Start>>;

export type FrameworkName = keyof typeof frameworks;
