import express from 'express';
import { answerAccessErrors, createAuthorize } from '../../../src/adapters/express.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** The routes of the scene in Express: a router at the root, and below the prefix. */
export function createExpressApp({ servers, onRefused }: Stage): express.Express {
  const router = express.Router();
  for (const { path, server, policy, behaviour } of routes) {
    const authorize = createAuthorize(servers[server], { onRefused });
    router.get(path, authorize(policy), (req, res) =>
      behave<unknown>(behaviour, () => res.json(describeAccess(authorize.accessOf(req)))),
    );
  }
  const failed: express.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(500).send(textOf(error));
  };
  return express().use(prefix, router).use(router).use(answerAccessErrors(servers.usual)).use(failed);
}
