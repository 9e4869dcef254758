import type { IncomingMessage, RequestListener } from 'node:http';
import { type ArgumentsHost, Catch, Controller, type ExceptionFilter, Get, Module, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Response } from 'express';
import { CurrentAccess, createGuard, Protect } from '../../../src/adapters/nest.ts';
import type { Access } from '../../../src/core/resource-server/resource-server.ts';
import { decorate } from '../decorate.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** Answers what handlers throw; Express and Fastify both know `status` and `send`. */
export class FailureFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost) {
    host.switchToHttp().getResponse<Response>().status(500).send(textOf(error));
  }
}
Catch()(FailureFilter);

/** The routes of the scene in two Nest applications: at the root, and below a global prefix. */
export async function createNestApp(stage: Stage): Promise<RequestListener> {
  const [atRoot, below] = await Promise.all([createOne('', stage), createOne(prefix, stage)]);
  const choose = ({ url = '' }: IncomingMessage) => (url.startsWith(prefix) ? below : atRoot);
  return (request, response) => choose(request)(request, response);
}

async function createOne(globalPrefix: string, stage: Stage): Promise<RequestListener> {
  const app = await NestFactory.create(createRoot(stage), { logger: false });
  app.setGlobalPrefix(globalPrefix);
  // It would give every exception its own form, were refusals not answered before.
  app.useGlobalFilters(new FailureFilter());
  await app.init();
  return app.getHttpAdapter().getInstance() as RequestListener; // the Express application
}

/** A module with one controller for each route. */
export function createRoot({ servers, onRefused }: Stage): new () => object {
  const controllers = routes.map(({ path, server, policy, behaviour }) => {
    class Messages {
      read(access: Access) {
        return behave(behaviour, () => describeAccess(access));
      }
    }
    decorate(Messages.prototype, 'read', Get(path), Protect(policy));
    CurrentAccess()(Messages.prototype, 'read', 0);
    UseGuards(createGuard(servers[server], { onRefused }))(Messages);
    Controller()(Messages);
    return Messages;
  });
  class Root {}
  Module({ controllers })(Root);
  return Root;
}
