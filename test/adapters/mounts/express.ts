import express from 'express';
import { createProtect } from '../../../src/adapters/express.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** The routes of the scene in Express: a router at the root, and below the prefix. */
export function createExpressApp({ servers, onRefused }: Stage): express.Express {
  const router = express.Router();
  for (const { path, server, policy, behaviour } of routes) {
    const protect = createProtect(servers[server], { onRefused });
    router.get(
      path,
      protect(policy, (_req, res, access) => behave(behaviour, () => res.json(describeAccess(access)))),
    );
  }
  const failed: express.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(500).send(textOf(error));
  };
  return express().use(prefix, router).use(router).use(failed);
}
