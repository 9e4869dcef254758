import type { RequestListener } from 'node:http';
import { createProtect } from '../../../src/adapters/node.ts';
import { behave, describeAccess, prefix, routes } from '../scene.ts';
import { type Stage, textOf } from './stage.ts';

/** The routes of the scene in a listener of `node:http`. */
export function createNodeApp({ servers, onRefused }: Stage): RequestListener {
  const listeners = new Map<string, RequestListener>();
  for (const { path, server, policy, behaviour } of routes) {
    const protect = createProtect(servers[server], { onRefused });
    const listener = protect(policy, (_request, response, access) =>
      behave(behaviour, () => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(describeAccess(access)));
      }),
    );
    listeners.set(path, listener).set(`${prefix}${path}`, listener);
  }
  return async (request, response) => {
    try {
      await listeners.get(request.url ?? '')?.(request, response);
    } catch (error) {
      response.writeHead(500).end(textOf(error));
    }
  };
}
