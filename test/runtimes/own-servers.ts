import { createFetchApp } from '../adapters/mounts/fetch.ts';
import { createHonoApp, createHonoBasePathApp } from '../adapters/mounts/hono.ts';
import type { Stage } from '../adapters/mounts/stage.ts';

/** The transport under a request, which the server of the runtime hands over with it. */
export interface Peer {
  readonly remoteAddress: string;
}

/** Handles a request. */
export type Answer = (request: Request, peer: Peer) => Response | Promise<Response>;

type Env = { readonly Bindings: Peer };

/** Frameworks whose handlers are given to the server of the runtime itself, where it has one. */
export const requestApps: Readonly<Record<string, (stage: Stage) => Answer>> = {
  hono: (stage) => createHonoApp<Env>(stage, ({ env }) => env).fetch,
  'hono, basePath': (stage) => createHonoBasePathApp<Env>(stage, ({ env }) => env).fetch,
  fetch: (stage) => createFetchApp<Peer>(stage, (_request, peer) => peer),
};

interface BunServer {
  readonly port: number;
  requestIP(request: Request): { readonly address: string };
}

interface DenoServer {
  readonly addr: { readonly port: number };
}

interface Place {
  readonly hostname: string;
  readonly port: number;
}

/** Used parts of Bun and Deno. */
interface Runtime {
  readonly Bun?: {
    serve(options: Place & { fetch(request: Request, server: BunServer): Response | Promise<Response> }): BunServer;
  };
  readonly Deno?: {
    serve(
      options: Place & { onListen(): void },
      answer: (
        request: Request,
        info: { readonly remoteAddr: { readonly hostname: string } },
      ) => Response | Promise<Response>,
    ): DenoServer;
  };
}

/** Serves on a free loopback port, which is returned; `undefined` on Node, which has no server of this kind. */
export function serveRequests(answer: Answer): number | undefined {
  const { Bun, Deno } = globalThis as Runtime;
  const place: Place = { hostname: '127.0.0.1', port: 0 };
  if (Bun !== undefined) {
    const fetch = (request: Request, server: BunServer) =>
      answer(request, { remoteAddress: server.requestIP(request).address });
    return Bun.serve({ ...place, fetch }).port;
  }
  return Deno?.serve({ ...place, onListen: () => undefined }, (request, { remoteAddr }) =>
    answer(request, { remoteAddress: remoteAddr.hostname }),
  ).addr.port;
}
