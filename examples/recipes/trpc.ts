import { createServer, type IncomingMessage, type Server } from 'node:http';
import { initTRPC, TRPCError } from '@trpc/server';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { TRPC_ERROR_CODES_BY_KEY, type TRPCErrorResponse } from '@trpc/server/rpc';
import { type Access, AccessError, type ErrorBody, type ErrorReport, type ResourceServer } from 'portcullis';
import { createProtect, toResourceRequest } from 'portcullis/node';

interface Context {
  readonly access: Access | undefined;
  /** The headers of a refusal, such as its challenge. */
  readonly headersOf: (refused: AccessError) => Readonly<Record<string, string>>;
}

const t = initTRPC.context<Context>().create({ isDev: false }); // a response has no stack, in development too

/** A procedure for clients with this scope. `ctx.access` is defined in it. */
const withScope = (scope: string) =>
  t.procedure.use(({ ctx: { access }, next }) => {
    if (access === undefined) throw refuse('UNAUTHORIZED', new AccessError('missing_credentials', { scopes: [scope] }));
    if (!access.scopes.has(scope))
      throw refuse('FORBIDDEN', new AccessError('insufficient_scope', { scopes: [scope] }));
    return next({ ctx: { access } });
  });

const refuse = (code: 'UNAUTHORIZED' | 'FORBIDDEN', cause: AccessError) =>
  new TRPCError({ code, message: cause.message, cause });

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
  const protect = createProtect(resourceServer, { errorBody: toErrorBody });
  const admitted = new WeakMap<IncomingMessage, Access>();
  const handler = createHTTPHandler<typeof router>({
    router,
    createContext: ({ req }) => ({
      access: admitted.get(req),
      headersOf: (refused) => resourceServer.describeRefusal(refused, toResourceRequest(req)).headers,
    }),
    responseMeta({ ctx, errors }) {
      const refused = errors.map(({ cause }) => cause).find((cause) => cause instanceof AccessError);
      const challenge = refused && ctx?.headersOf(refused)['www-authenticate'];
      return challenge === undefined ? {} : { headers: { 'www-authenticate': challenge } };
    },
  });
  return createServer(
    protect.optional({}, (request, response, access) => {
      if (access !== undefined) admitted.set(request, access);
      return handler(request, response);
    }),
  );
}
