import fastify, { type FastifyInstance } from 'fastify';
import { answerAccessErrors, createAuthorize } from '../../../src/adapters/fastify.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** The routes of the scene in Fastify, with hooks: alternately before the body is read and before the handler. */
export function createFastifyApp({ servers, onRefused }: Stage): FastifyInstance {
  const app = fastify();
  app.setErrorHandler((error, _request, reply) => reply.code(500).send(textOf(error)));
  const plugin = async (scope: FastifyInstance) => {
    scope.setErrorHandler(answerAccessErrors(servers.usual));
    for (const [index, { path, server, policy, behaviour }] of routes.entries()) {
      const authorize = createAuthorize(servers[server], { onRefused });
      scope.get(path, { [index % 2 === 0 ? 'onRequest' : 'preHandler']: authorize(policy) }, (request, reply) =>
        behave(behaviour, () => reply.send(describeAccess(authorize.accessOf(request)))),
      );
    }
  };
  app.register(plugin).register(plugin, { prefix });
  return app;
}
