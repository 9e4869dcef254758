import { createServer, type Server } from 'node:http';
import { initTRPC, TRPCError } from '@trpc/server';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import type { Access, ResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/node';

const t = initTRPC.context<{ readonly access: Access | undefined }>().create();

/** A procedure for callers with this scope. `ctx.access` is there wherever it runs. */
const withScope = (scope: string) =>
  t.procedure.use(({ ctx: { access }, next }) => {
    if (access === undefined) throw new TRPCError({ code: 'UNAUTHORIZED' });
    if (!access.scopes.has(scope)) throw new TRPCError({ code: 'FORBIDDEN' });
    return next({ ctx: { access } });
  });

const router = t.router({
  greeting: t.procedure.query(() => 'open to everybody'),
  reader: withScope('read:messages').query(({ ctx }) => ctx.access.claims.sub),
});

/** For `createTRPCClient<Router>` of the client. */
export type Router = typeof router;

/** A call without a token reaches the open procedures; a token that is no good is refused before all of them. */
export function createProcedures(resourceServer: ResourceServer): Server {
  const authorize = createAuthorize(resourceServer);
  const handler = createHTTPHandler({ router, createContext: ({ req }) => ({ access: authorize.findAccess(req) }) });
  const judge = authorize.optional();
  return createServer((request, response) => judge(request, response, () => handler(request, response)));
}
