import type { RequestListener } from 'node:http';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { prefix } from '../scene.ts';
import { createRoot, FailureFilter } from './nest.ts';
import type { Stage } from './stage.ts';

/** The routes of the scene in two Nest applications on Fastify: at the root, and below a global prefix. */
export async function createNestFastifyApp(stage: Stage): Promise<RequestListener> {
  const [atRoot, below] = await Promise.all([createOne('', stage), createOne(prefix, stage)]);
  return (request, response) => (request.url?.startsWith(prefix) ? below : atRoot)(request, response);
}

async function createOne(globalPrefix: string, stage: Stage): Promise<RequestListener> {
  const app = await NestFactory.create<NestFastifyApplication>(createRoot(stage), new FastifyAdapter(), {
    logger: false,
  });
  app.setGlobalPrefix(globalPrefix);
  app.useGlobalFilters(new FailureFilter());
  await app.init();
  const instance = app.getHttpAdapter().getInstance();
  await instance.ready();
  return (request, response) => instance.routing(request, response);
}
