import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { FastifyAdapter } from '@nestjs/platform-fastify';

/** Starts an application of Nest, on Express or on the adapter, after `prepare`. */
export async function listenNest(
  root: Parameters<typeof NestFactory.create>[0],
  adapter?: FastifyAdapter,
  prepare: (app: INestApplication) => unknown = () => undefined,
) {
  const app = await (adapter === undefined
    ? NestFactory.create(root, { logger: false })
    : NestFactory.create(root, adapter, { logger: false }));
  prepare(app);
  await app.listen(0, '127.0.0.1');
  return { origin: await app.getUrl(), close: () => app.close() };
}
