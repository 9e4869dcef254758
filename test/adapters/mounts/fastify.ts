import fastify, { type FastifyInstance } from 'fastify';
import { createProtect } from '../../../src/adapters/fastify.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** The routes of the scene in Fastify: a plugin at the root, and below the prefix. */
export function createFastifyApp({ servers, onRefused }: Stage): FastifyInstance {
  const app = fastify();
  app.setErrorHandler((error, _request, reply) => reply.code(500).send(textOf(error)));
  const plugin = async (scope: FastifyInstance) => {
    for (const { path, server, policy, behaviour } of routes) {
      const protect = createProtect(servers[server], { onRefused });
      scope.get(
        path,
        protect(policy, (_request, reply, access) => behave(behaviour, () => reply.send(describeAccess(access)))),
      );
    }
  };
  app.register(plugin).register(plugin, { prefix });
  return app;
}
