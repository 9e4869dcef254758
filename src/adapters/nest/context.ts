import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ArgumentsHost } from '@nestjs/common';
import type { Refusal } from '../../refusal/refusal.ts';
import { sendRefusal } from '../node-response.ts';

export interface CalledRequest {
  readonly incoming: IncomingMessage;
  readonly target: string | undefined;
}

/** Possible member of a context: a request of `node:http`, or a request of Fastify. */
type Held = { readonly rawHeaders?: unknown; readonly raw?: unknown; readonly originalUrl?: string } | undefined;

/**
 * Finds the request. HTTP: the request of Express or Fastify. GraphQL: the member that Apollo or Mercurius sets, or the upgrade
 * of subscriptions. WebSocket gateways: the upgrade that socket.io keeps.
 */
export function findCalledRequest(host: ArgumentsHost): CalledRequest | undefined {
  for (const candidate of listCandidates(host)) {
    const found = readHeld(candidate as Held); // it checks the members
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Reads a request of `node:http` or of Fastify; `undefined` for every other value. */
export function readHeld(held: Held): CalledRequest | undefined {
  for (const each of [held, held?.raw as Held]) {
    // Only a request of node:http has these.
    if (Array.isArray(each?.rawHeaders)) return { incoming: each as IncomingMessage, target: held?.originalUrl };
  }
  return undefined;
}

/** Returns the object shared by the guards, filters and handlers of one context. */
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

function listCandidates(host: ArgumentsHost): readonly unknown[] {
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

interface GraphqlContext {
  readonly req?: unknown;
  readonly res?: unknown;
  readonly request?: unknown;
  readonly reply?: { readonly request?: unknown };
  readonly extra?: { readonly request?: unknown };
}

function contextOf(host: ArgumentsHost): GraphqlContext {
  return host.getArgByIndex<GraphqlContext | undefined>(2) ?? {};
}

/** Finds the response of a context; WebSockets have none. */
export function findResponse(host: ArgumentsHost): ServerResponse | undefined {
  const type = host.getType<string>();
  const held =
    type === 'http' ? host.switchToHttp().getResponse<unknown>() : type === 'graphql' ? replyOf(host) : undefined;
  const { raw = held } = Object(held) as { readonly raw?: unknown }; // Fastify's reply has the response in `raw`
  return typeof Reflect.get(Object(raw), 'setHeader') === 'function' ? (raw as ServerResponse) : undefined;
}

function replyOf(host: ArgumentsHost): unknown {
  const { res, reply } = contextOf(host);
  return res ?? reply;
}

interface Reply {
  readonly raw: ServerResponse;
  code(status: number): Reply;
  headers(values: Readonly<Record<string, string>>): Reply;
  send(body: Buffer): unknown;
}

/** Sends a refusal over the transport of a context. The result is the result of a resolver. */
export function sendToCaller(host: ArgumentsHost, refusal: Refusal): unknown {
  switch (host.getType<string>()) {
    case 'http': {
      const response = host.switchToHttp().getResponse<ServerResponse | Reply>();
      if (!('raw' in response)) return sendRefusal(refusal, response);
      // Bytes, because Fastify adds a charset to the type of a string.
      return response.code(refusal.status).headers(refusal.headers).send(Buffer.from(refusal.body));
    }
    case 'ws':
      return emitRefusal(host.switchToWs().getClient(), refusal);
    default:
      return new RefusedCall(refusal);
  }
}

const codes: ReadonlyMap<number, string> = new Map([
  [400, 'BAD_REQUEST'],
  [401, 'UNAUTHENTICATED'],
  [403, 'FORBIDDEN'],
]);

/** Error that a resolver returns; servers read status and headers from `http`. */
class RefusedCall extends Error {
  readonly extensions: object;

  constructor({ status, headers }: Refusal) {
    super(
      status === 401 || status === 403
        ? 'The access token does not allow this operation.'
        : 'The request could not be validated.',
    );
    const code = codes.get(status) ?? 'INTERNAL_SERVER_ERROR';
    this.extensions = { code, http: { status, headers: new Map(Object.entries(headers)) } };
  }
}

interface SocketClient {
  emit(event: string, value: object): unknown;
  send(message: string): unknown;
  readonly handshake?: unknown;
}

/** Reports a refusal as Nest reports its own exceptions: an event of socket.io, or a message in JSON. */
function emitRefusal(client: SocketClient, { status }: Refusal): void {
  const report = {
    status: 'error',
    message: status === 403 ? 'Forbidden' : status === 401 ? 'Unauthorized' : 'Unavailable',
  };
  if (client.handshake === undefined) client.send(JSON.stringify({ event: 'exception', data: report }));
  else client.emit('exception', report);
}
