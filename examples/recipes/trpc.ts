import { createServer, type Server } from 'node:http';
import { initTRPC, TRPCError } from '@trpc/server';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { TRPC_ERROR_CODES_BY_KEY, type TRPCErrorResponse } from '@trpc/server/rpc';
import type { Access, ErrorBody, ErrorReport, ResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/node';

const t = initTRPC.context<{ readonly access: Access | undefined }>().create();

/** A procedure for clients with this scope. `ctx.access` is defined in it. */
const withScope = (scope: string) =>
  t.procedure.use(({ ctx: { access }, next }) => {
    if (access === undefined) throw new TRPCError({ code: 'UNAUTHORIZED' });
    if (!access.scopes.has(scope)) throw new TRPCError({ code: 'FORBIDDEN' });
    return next({ ctx: { access } });
  });

const router = t.router({
  greeting: t.procedure.query(() => 'open to all'),
  reader: withScope('read:messages').query(({ ctx }) => ctx.access.claims.sub),
});

/** For `createTRPCClient<Router>` of the client. */
export type Router = typeof router;

/** The body of a refusal as tRPC's clients read it: one error, for every procedure of a batch. */
function toErrorBody({ status, description: message }: ErrorReport): ErrorBody {
  const code = status === 401 ? 'UNAUTHORIZED' : status === 403 ? 'FORBIDDEN' : 'INTERNAL_SERVER_ERROR';
  const error = { message, code: TRPC_ERROR_CODES_BY_KEY[code], data: { code, httpStatus: status } };
  return { contentType: 'application/json', body: JSON.stringify({ error } satisfies TRPCErrorResponse) };
}

/** A request without a token reaches the open procedures; an invalid token is refused before all of them. */
export function createProcedures(resourceServer: ResourceServer): Server {
  const authorize = createAuthorize(resourceServer, { errorBody: toErrorBody });
  const handler = createHTTPHandler({ router, createContext: ({ req }) => ({ access: authorize.findAccess(req) }) });
  const pass = authorize.optional();
  return createServer((request, response) => pass(request, response, () => handler(request, response)));
}
