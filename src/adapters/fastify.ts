import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { EventReceiver } from '../core/http/event-post.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import { type BackchannelLogoutOptions, openBackchannelLogout } from '../core/revocation/logout/backchannel-logout.ts';
import { openSignalsReceiver, type SignalsReceiverOptions } from '../core/revocation/signals/receiver.ts';
import type { Claims, RegisteredClaims } from '../core/token/claims.ts';
import type { AdapterOptions, Visitor } from './checkpoint.ts';
import { type AuthorizeForms, createMiddlewareForms, type Fix } from './forms.ts';
import { type MetadataAnswer, type MetadataOptions, openMetadata } from './metadata.ts';
import { createNodeCheckpoint, describeNode } from './node-middleware.ts';
import { readNodeBody, readNodeRequest } from './node-request.ts';

export type { RefusedRequest } from './checkpoint.ts';
export type { MetadataOptions } from './metadata.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The access that `authorize` of Portcullis granted; `undefined` if the request was not authorized. */
    access?: Access<RegisteredClaims>;
  }
}

/** Options of the adapter. */
export type AuthorizeOptions = AdapterOptions<FastifyRequest>;

/** The members of a Fastify request that are read, regardless of the types of its route. */
export interface JudgedRequest {
  /** Request of Node. */
  readonly raw: IncomingMessage;
  /** Target as the client sent it. */
  readonly originalUrl: string;
}

/** The members of a Fastify reply that identify it, regardless of the types of its route. */
export interface JudgedReply {
  /** Response of Node. */
  readonly raw: ServerResponse;
  /** True once a response was sent. */
  readonly sent: boolean;
}

/**
 * A hook, for `onRequest` or `preHandler`. Its types leave parameters, bodies and responses as Fastify infers them. An async hook
 * or handler awaits it without `done`: after a refusal, which was sent, the promise stays pending, so that nothing after it runs.
 */
export interface AuthorizeHook {
  (request: JudgedRequest, reply: JudgedReply, done: (error?: Error) => void): void;
  (request: JudgedRequest, reply: JudgedReply): Promise<void>;
}

/** Creates a hook from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. */
export type Authorize<D = Claims, F = Fix> = AuthorizeForms<AuthorizeHook, Pick<JudgedRequest, 'raw'>, D, F>;

/**
 * Creates the `authorize` function of a Fastify application: a hook for a route, a plugin or the entire application.
 * Handlers after it read the access in `request.access`, or with the types of the claims from `authorize.accessOf(request)`.
 *
 * @example
 * const authorize = createAuthorize(resourceServer);
 * app.get<{ Params: { id: string } }>(
 *   '/messages/:id',
 *   { onRequest: authorize({ scopes: ['read:messages'] }) },
 *   async (request) => ({ id: request.params.id, reader: authorize.accessOf(request).claims.sub }),
 * );
 */
export function createAuthorize<D extends RegisteredClaims = Claims>(
  server: ResourceServer<D>,
  options: AuthorizeOptions = {},
): Authorize<D> {
  const checkpoint = createNodeCheckpoint('createAuthorize', server, options);
  return createMiddlewareForms(
    server,
    (route) => {
      const hook = (request: JudgedRequest, reply: JudgedReply, done?: (error?: Error) => void): unknown => {
        const admit = async (): Promise<boolean> => {
          const { access, refusal } = await checkpoint.pass(route, describe(request));
          if (refusal !== undefined) send(refusal, reply);
          if (access !== undefined) Object.assign(request, { access });
          if (access?.dpopNonce !== undefined) (reply as FastifyReply).header('dpop-nonce', access.dpopNonce);
          return refusal === undefined;
        };
        // Later hooks run after the handler; a refusal in one of them would run it again without end.
        if (reply.sent || !['function', 'undefined'].includes(typeof done)) throw new TypeError(wrongHook);
        const admission = admit();
        if (done !== undefined) return void admission.then((isAdmitted) => isAdmitted && done(), done);
        return new Promise<void>((resolve, reject) => {
          admission.then((isAdmitted) => isAdmitted && resolve(), reject);
        });
      };
      return hook as AuthorizeHook;
    },
    ({ raw }) => raw,
  );
}

const wrongHook =
  'authorize: use it as onRequest, preValidation or preHandler; the other hooks do not protect the handler';

/**
 * Creates an error handler: it responds to an `AccessError` that a handler has thrown with that refusal. Every other error is
 * passed to the enclosing error handler, and finally to Fastify's.
 *
 * @example
 * app.setErrorHandler(answerAccessErrors(resourceServer));
 */
export function answerAccessErrors(
  server: ResourceServer<RegisteredClaims>,
  options: AuthorizeOptions = {},
): (error: unknown, request: JudgedRequest, reply: JudgedReply) => unknown {
  const checkpoint = createNodeCheckpoint('answerAccessErrors', server, options);
  return (error, request, reply) => {
    const refusal = reply.sent ? undefined : checkpoint.describeThrown(error, describe(request));
    if (refusal === undefined) throw error;
    return send(refusal, reply);
  };
}

/**
 * Creates a plugin that serves the metadata of the resource (RFC 9728), and turns on the link to it in challenges. Mount it at
 * the root. Throws `TypeError` for invalid options.
 *
 * @example
 * app.register(createMetadata(resourceServer, { resource: 'https://api.example/', authorizationServers: ['https://idp.example/'] }));
 */
export function createMetadata(
  server: ResourceServer<RegisteredClaims>,
  options: MetadataOptions,
): FastifyPluginCallback {
  const metadata = openMetadata(server, options);
  // The path as clients build it, and with the slash of a resource that ends in one.
  return createPlugin([metadata.path, `${metadata.path}/`], async (request, reply) =>
    send(metadata.answerHere(request.method), reply),
  );
}

/**
 * Creates a plugin that receives logout tokens (OpenID Connect Back-Channel Logout 1.0) at `/backchannel-logout`. The server
 * needs `revocations`. Mount it at the root. Throws `TypeError` for invalid options.
 *
 * @example
 * app.register(createBackchannelLogout(resourceServer, { clientIds: ['app', 'spa'] }));
 */
export function createBackchannelLogout(
  server: ResourceServer<RegisteredClaims>,
  options: BackchannelLogoutOptions,
): FastifyPluginCallback {
  const { route, ...receiver } = openBackchannelLogout(server, options);
  return serveEvents(receiver, route);
}

/**
 * Creates a plugin that receives security events (Shared Signals Framework 1.0) below `/shared-signals/`, and registers its
 * streams in the background until the application closes. The server needs `revocations`. Mount it at the root. Throws
 * `TypeError` for invalid options.
 */
export function createSignalsReceiver(
  server: ResourceServer<RegisteredClaims>,
  options: SignalsReceiverOptions,
): FastifyPluginCallback {
  const signals = openSignalsReceiver(server, options);
  const serve = serveEvents(signals, '/shared-signals/:stream');
  return (app, options, done) => {
    app.addHook('onClose', async () => signals.close());
    serve(app, options, done);
  };
}

function serveEvents(receiver: Pick<EventReceiver, 'respond'>, url: string): FastifyPluginCallback {
  return createPlugin([url], async ({ raw }, reply) => {
    const readBody = (maxBytes: number): Promise<string | 413> => readNodeBody(raw, maxBytes);
    const path = String(raw.url).replace(/\?.*$/s, '');
    return send(
      await receiver.respond({ request: readNodeRequest(raw), connection: raw.socket, readBody }, path),
      reply,
    );
  });
}

/** Creates a plugin that responds before a body is read, regardless of its type. */
function createPlugin(
  urls: readonly string[],
  respond: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>,
): FastifyPluginCallback {
  return (app, _options, done) => {
    for (const url of urls) {
      const method = [...app.supportedMethods];
      app.route({ method, url, exposeHeadRoute: false, onRequest: respond, handler: respond });
    }
    done();
  };
}

function describe(request: JudgedRequest): Visitor<FastifyRequest> {
  // Fastify calls with its own request; the types of the route are not read here.
  return describeNode(request.raw, request.originalUrl, request as FastifyRequest);
}

function send({ status, headers, body }: MetadataAnswer, reply: JudgedReply): FastifyReply {
  // The types of the route do not describe this response. Bytes, because Fastify adds a charset to the type of a string.
  return (reply as FastifyReply)
    .code(status)
    .headers(headers)
    .send(body === null ? undefined : Buffer.from(body));
}
