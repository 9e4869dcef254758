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

const run = async (server: Server, { refused }: Stage): Promise<Running> => ({
  ...(await listen(server)),
  refused: async () => refused,
});

type Bindings = { readonly Bindings: HttpBindings };
type Adapted = Parameters<typeof createAdaptorServer>[0];

/** Node takes heads of 16 KiB, and a token alone may have as much. */
const maxHeaderSize = 32_768;

/** HTTP/1 unless told otherwise. */
const adapt = ({ fetch }: Pick<Adapted, 'fetch'>): Server =>
  createAdaptorServer({ fetch, serverOptions: { maxHeaderSize } }) as Server;

const node: Start = (issuer) => {
  const stage = createStage(issuer);
  return run(createServer({ maxHeaderSize }, createNodeApp(stage)), stage);
};

const express: Start = (issuer) => {
  const stage = createStage(issuer);
  return run(createServer(createExpressApp(stage)), stage);
};

const fastify: Start = async (issuer) => {
  const stage = createStage(issuer);
  const app = createFastifyApp(stage);
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  return { origin, refused: async () => stage.refused, close: () => app.close() };
};

const hono: Start = (issuer) => {
  const stage = createStage(issuer);
  return run(adapt(createHonoApp<Bindings>(stage, (c) => c.env.incoming.socket)), stage);
};

const honoBasePath: Start = (issuer) => {
  const stage = createStage(issuer);
  return run(adapt(createHonoBasePathApp<Bindings>(stage, (c) => c.env.incoming.socket)), stage);
};

const fetch: Start = (issuer) => {
  const stage = createStage(issuer);
  const app = createFetchApp<HttpBindings>(stage, (_request, { incoming }) => incoming.socket);
  // As Hono's own; the handler is called without Hono.
  return run(adapt({ fetch: app } as Adapted), stage);
};

const nest: Start = async (issuer) => {
  const stage = createStage(issuer);
  return run(createServer(await createNestApp(stage)), stage);
};

const nestOnFastify: Start = async (issuer) => {
  const stage = createStage(issuer);
  return run(createServer(await createNestFastifyApp(stage)), stage);
};

/** Every adapter, by name. */
export const frameworks = {
  node,
  express,
  fastify,
  hono,
  'hono, basePath': honoBasePath,
  fetch,
  nest,
  'nest on Fastify': nestOnFastify,
} as const satisfies Readonly<Record<string, Start>>;

export type FrameworkName = keyof typeof frameworks;
