import type { IncomingMessage } from 'node:http';
import type {
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  RouteGenericInterface,
} from 'fastify';
import { same, settle } from '../maybe-promise.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../refusal/error-body.ts';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { checkNodeHttp, checkRoute } from './admission.ts';
import { findAccessOf, requireAccessOf } from './admitted.ts';
import { type Checkpoint, checkAdapterOptions, createCheckpoint, type Demand, demand } from './checkpoint.ts';
import { type AccessReaders, createForms, createMiddlewareForms } from './forms.ts';
import { type MetadataOptions, openMetadata } from './metadata.ts';
import { readNodeRequest } from './node-request.ts';

export type { MetadataOptions } from './metadata.ts';

/** What the adapter may need to know of the application around it. */
export interface ProtectOptions {
  /** Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. */
  readonly onRefused?: (error: unknown, request: FastifyRequest) => unknown;
  /** Realm of the challenge for a request, such as the name of its tenant. Default: the audiences of the server. */
  readonly realm?: (request: FastifyRequest) => string | undefined;
  /** Makes the body of a refusal for a request, such as one with its id. Default: the form that the server has. */
  readonly errorBody?: (report: ErrorReport, request: FastifyRequest) => ErrorBody;
}

type Req<R extends RouteGenericInterface> = FastifyRequest<R>;
type Rep<R extends RouteGenericInterface> = FastifyReply<R>;

/**
 * Answers a request that was let in. `R` has the types of the route: `Params`, `Querystring`, `Body`; `C` are the claims
 * that the policy gives.
 */
export type ProtectedHandler<R extends RouteGenericInterface, C = Claims, A = Access<C>> = (
  this: FastifyInstance,
  request: Req<R>,
  reply: Rep<R>,
  access: A,
) => unknown;

/** The two options of a route that belong together: the hook judges, before a body is read, and the handler answers. */
export interface ProtectedRoute<R extends RouteGenericInterface> {
  readonly onRequest: (this: FastifyInstance, request: Req<R>, reply: Rep<R>, done: (error?: Error) => void) => void;
  readonly handler: (this: FastifyInstance, request: Req<R>, reply: Rep<R>) => unknown;
}

/**
 * Puts a policy before a handler. A handler that takes `Access` cannot be mounted without one. Throws `TypeError` for a
 * policy that cannot work.
 */
export interface Protect<D = Claims> {
  <C = D, R extends RouteGenericInterface = RouteGenericInterface>(
    policy: Policy<C>,
    handler: ProtectedHandler<R, HandedClaims<C, D>>,
  ): ProtectedRoute<R>;
  /** The same for a route that is open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional<C = D, R extends RouteGenericInterface = RouteGenericInterface>(
    policy: Policy<C>,
    handler: ProtectedHandler<R, HandedClaims<C, D>, Access<HandedClaims<C, D>> | undefined>,
  ): ProtectedRoute<R>;
}

/** What is read of a request of Fastify, whatever the types of its route are. */
export interface JudgedRequest {
  readonly raw: IncomingMessage;
  readonly originalUrl: string;
}

/** What is done with a reply of Fastify, whatever the types of its route are. */
export interface JudgedReply {
  readonly sent: boolean;
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  headers(values: Readonly<Record<string, string>>): unknown;
  send(body: Buffer): unknown;
}

/** A hook, for `onRequest` or `preHandler`. Its types leave parameters and bodies as Fastify finds them. */
export type AuthorizeHook = (request: JudgedRequest, reply: JudgedReply, done: (error?: Error) => void) => void;

/** Makes a hook of a policy; without one any valid token will do. Throws `TypeError` for a policy that cannot work. */
export interface Authorize<D = Claims> extends AccessReaders<Pick<JudgedRequest, 'raw'>, D> {
  (policy?: Policy<unknown>): AuthorizeHook;
  /** The same for routes that are open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional(policy?: Policy<unknown>): AuthorizeHook;
}

/**
 * Creates the `protect` function of a Fastify application. What it returns are the options of a route; more of them
 * may stand beside: `{ schema, ...protect(policy, handler) }`.
 *
 * @example
 * const protect = createProtect(resourceServer);
 * app.get('/messages', protect({ scopes: ['read:messages'] }, async (request, reply, access) => access.claims));
 */
export function createProtect<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Protect<D> {
  const checkpoint = open('createProtect', server, options);
  const forms = createForms(
    (credentials) =>
      <C, R extends RouteGenericInterface>(policy: Policy<C>, handler: ProtectedHandler<R, C>): ProtectedRoute<R> => {
        checkRoute(policy, handler);
        const onRequest = createHook(checkpoint, demand(policy, credentials));
        // Not by `accessOf`: a request that another route has let in was not let in here.
        const passed = new WeakSet<object>();
        return {
          onRequest(request, reply, done) {
            onRequest(request, reply as JudgedReply, (error) => {
              if (error === undefined) passed.add(request);
              done(error);
            });
          },
          handler(request, reply) {
            if (!passed.has(request)) {
              throw new TypeError(
                'protect: the route has lost its onRequest hook; spread protect(…) after other options',
              );
            }
            // Absent only if credentials are optional, and then the handler is one that knows.
            const access = findAccessOf(request.raw, policy) as Access<C>;
            return settle(
              () => handler.call(this, request, reply, access),
              same,
              (error) => {
                const refusal = reply.sent ? undefined : checkpoint.describeThrown(error, see(request));
                if (refusal === undefined) throw error;
                return send(refusal, reply as JudgedReply);
              },
            );
          },
        };
      },
  );
  // The handler of `optional` has the type that the interface says.
  return forms as Protect<D>;
}

/**
 * Creates the `authorize` function of a Fastify application: a hook for a route, a plugin or the whole application.
 * Handlers behind it find the access with `accessOf(request)`.
 *
 * @example
 * const authorize = createAuthorize(resourceServer);
 * app.get<{ Params: { id: string } }>(
 *   '/messages/:id',
 *   { onRequest: authorize({ scopes: ['read:messages'] }) },
 *   async (request) => ({ id: request.params.id, reader: accessOf(request).claims.sub }),
 * );
 */
export function createAuthorize<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: ProtectOptions = {},
): Authorize<D> {
  const checkpoint = open('createAuthorize', server, options);
  return createMiddlewareForms({ accessOf, findAccess }, (asked) => createHook(checkpoint, asked));
}

/**
 * Creates an error handler: an `AccessError` that a handler has thrown is answered as that refusal. Every other error
 * goes on to the error handler around it, at last to Fastify's own.
 *
 * @example
 * app.setErrorHandler(answerAccessErrors(resourceServer));
 */
export function answerAccessErrors(
  server: ResourceServer<RegisteredClaims>,
  options: ProtectOptions = {},
): (error: unknown, request: JudgedRequest, reply: JudgedReply) => unknown {
  const checkpoint = open('answerAccessErrors', server, options);
  return (error, request, reply) => {
    const refusal = reply.sent ? undefined : checkpoint.describeThrown(error, see(request));
    if (refusal === undefined) throw error;
    return send(refusal, reply);
  };
}

/**
 * Serves the metadata of the resource (RFC 9728), and lets challenges link to it. Mount it at the root. Throws `TypeError`
 * for options that cannot work.
 *
 * @example
 * app.register(createMetadata(resourceServer, { resource: 'https://api.example/', authorizationServers: ['https://idp.example/'] }));
 */
export function createMetadata(
  server: ResourceServer<RegisteredClaims>,
  options: MetadataOptions,
): FastifyPluginCallback {
  const metadata = openMetadata(server, options);
  const answer = (request: FastifyRequest, reply: FastifyReply): void => {
    const { status, headers, body } = metadata.answerHere(request.method);
    // Bytes: to the type of a text Fastify would add a charset.
    reply
      .code(status)
      .headers(headers)
      .send(body === null ? undefined : Buffer.from(body));
  };
  return (app, _options, done) => {
    // As clients write it, and with the slash of a resource that ends in one.
    for (const url of [metadata.path, `${metadata.path}/`]) {
      // Answered before a body is read, whatever its type is.
      app.route({ method: [...app.supportedMethods], url, exposeHeadRoute: false, onRequest: answer, handler: answer });
    }
    done();
  };
}

/** What a request that was let in may do, with the claims that the policy gives. `TypeError` if nobody has let it in. */
export function accessOf<C = RegisteredClaims>(
  request: Pick<JudgedRequest, 'raw'>,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> {
  return requireAccessOf(request.raw, policy);
}

/** The same; `undefined` if nobody has let it in. */
export function findAccess<C = RegisteredClaims>(
  request: Pick<JudgedRequest, 'raw'>,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> | undefined {
  return findAccessOf(request.raw, policy);
}

function createHook<C>(checkpoint: Checkpoint<FastifyRequest>, asked: Demand<C>): AuthorizeHook {
  return (request, reply, done) => {
    const passed = checkpoint.pass<void, C>(asked, {
      ...see(request),
      admit: (access) => {
        if (access?.dpopNonce !== undefined) reply.header('dpop-nonce', access.dpopNonce);
        done();
      },
      refuse: (refusal) => {
        send(refusal, reply);
      },
    });
    if (passed instanceof Promise) passed.catch(done);
  };
}

function see(request: JudgedRequest) {
  const { raw, originalUrl } = request;
  // Fastify calls with nothing else; the types of the route do not matter here.
  const told = request as FastifyRequest;
  return { key: raw, request: readNodeRequest(raw, originalUrl), connection: raw.socket, told };
}

function send({ status, headers, body }: Refusal, reply: JudgedReply): JudgedReply {
  reply.code(status);
  reply.headers(headers);
  // Bytes: to the type of a text Fastify would add a charset.
  reply.send(Buffer.from(body));
  return reply;
}

function open(caller: string, server: ResourceServer<RegisteredClaims>, options: ProtectOptions) {
  checkNodeHttp(caller);
  checkAdapterOptions(caller, options, ['onRefused', 'realm', 'errorBody']);
  return createCheckpoint<FastifyRequest>(caller, server, options);
}
