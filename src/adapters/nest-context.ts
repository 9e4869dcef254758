import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ArgumentsHost } from '@nestjs/common';
import type { Refusal } from '../refusal/refusal.ts';
import { sendRefusal } from './node-answer.ts';

/** The request under a call of Nest, of any transport. */
export interface CalledRequest {
  readonly incoming: IncomingMessage;
  /** The request target as the client sent it. */
  readonly target: string | undefined;
}

/** What a place of a context may hold: a request of `node:http`, or one of Fastify. */
type Held = { readonly rawHeaders?: unknown; readonly raw?: unknown; readonly originalUrl?: string } | undefined;

/**
 * Finds the request: of HTTP on Express and Fastify; of GraphQL in the context, where Apollo and Mercurius put it, or its
 * upgrade for subscriptions; of a WebSocket gateway the upgrade that socket.io keeps.
 */
export function findCalledRequest(host: ArgumentsHost): CalledRequest | undefined {
  for (const place of listPlaces(host)) {
    const found = readHeld(place as Held); // its members are looked at before they are believed
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Takes a request of `node:http` or of Fastify for what it is. */
export function readHeld(held: Held): CalledRequest | undefined {
  for (const each of [held, held?.raw as Held]) {
    // Nothing but a request of node:http has these.
    if (Array.isArray(each?.rawHeaders)) return { incoming: each as IncomingMessage, target: held?.originalUrl };
  }
  return undefined;
}

/** What is the same for guards, filters and handlers of one call. */
export function keyOfCall(host: ArgumentsHost): object {
  switch (host.getType<string>()) {
    case 'graphql':
      return contextOf(host);
    case 'ws':
      return host.switchToWs().getClient<object>();
    default:
      return Object(host.getArgByIndex(0));
  }
}

function listPlaces(host: ArgumentsHost): readonly unknown[] {
  switch (host.getType<string>()) {
    case 'http':
      return [host.switchToHttp().getRequest()];
    case 'graphql': {
      const context = contextOf(host);
      return [context.req, context.request, context.reply?.request, context.extra?.request];
    }
    case 'ws':
      return [host.switchToWs().getClient<{ readonly request?: unknown }>().request];
    default:
      return [];
  }
}

/** A context of GraphQL, as Apollo, Mercurius and graphql-ws fill it. */
interface GraphqlContext {
  readonly req?: unknown;
  readonly res?: unknown;
  readonly request?: unknown;
  readonly reply?: { readonly request?: unknown };
  readonly extra?: { readonly request?: unknown };
}

/** A resolver is called with parent, arguments, context and information. */
function contextOf(host: ArgumentsHost): GraphqlContext {
  return host.getArgByIndex<GraphqlContext | undefined>(2) ?? {};
}

/** The response, if this call has one of its own: WebSockets have none. */
export function findResponse(host: ArgumentsHost): ServerResponse | undefined {
  const type = host.getType<string>();
  const held =
    type === 'http' ? host.switchToHttp().getResponse<unknown>() : type === 'graphql' ? replyOf(host) : undefined;
  const { raw = held } = Object(held) as { readonly raw?: unknown }; // that of Fastify has the response in `raw`
  return typeof Reflect.get(Object(raw), 'setHeader') === 'function' ? (raw as ServerResponse) : undefined;
}

function replyOf(host: ArgumentsHost): unknown {
  const { res, reply } = contextOf(host);
  return res ?? reply;
}

/** What Fastify answers with. */
interface Reply {
  readonly raw: ServerResponse;
  code(status: number): Reply;
  headers(values: Readonly<Record<string, string>>): Reply;
  send(body: Buffer): unknown;
}

/** Answers a refused call in the way of its transport; what is returned is the result of a resolver. */
export function answerCall(host: ArgumentsHost, refusal: Refusal): unknown {
  switch (host.getType<string>()) {
    case 'http': {
      const response = host.switchToHttp().getResponse<ServerResponse | Reply>();
      if (!('raw' in response)) return sendRefusal(refusal, response);
      // Bytes: to the type of a text Fastify would add a charset.
      return response.code(refusal.status).headers(refusal.headers).send(Buffer.from(refusal.body));
    }
    case 'ws':
      return emitRefusal(host.switchToWs().getClient(), refusal);
    default:
      return new RefusedCall(refusal);
  }
}

/** GraphQL codes by status, as Apollo has them. */
const codes: ReadonlyMap<number, string> = new Map([
  [400, 'BAD_REQUEST'],
  [401, 'UNAUTHENTICATED'],
  [403, 'FORBIDDEN'],
]);

/** Resolvers that return an error are answered with that error; servers take status and headers from `http`. */
class RefusedCall extends Error {
  readonly extensions: object;

  constructor({ status, headers }: Refusal) {
    super(
      status === 401 || status === 403 ? 'The access token does not allow this call.' : 'The call could not be judged.',
    );
    const code = codes.get(status) ?? 'INTERNAL_SERVER_ERROR';
    this.extensions = { code, http: { status, headers: new Map(Object.entries(headers)) } };
  }
}

interface SocketClient {
  emit(event: string, value: object): unknown;
  send(text: string): unknown;
  readonly handshake?: unknown;
}

/** As Nest tells its own exceptions: an event of socket.io, or a message in JSON. */
function emitRefusal(client: SocketClient, { status }: Refusal): void {
  const told = {
    status: 'error',
    message: status === 403 ? 'Forbidden' : status === 401 ? 'Unauthorized' : 'Unavailable',
  };
  if (client.handshake === undefined) client.send(JSON.stringify({ event: 'exception', data: told }));
  else client.emit('exception', told);
}
