import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ArgumentsHost } from '@nestjs/common';
import type { Refusal } from '../../refusal/refusal.ts';
import { sendRefusal } from '../node-middleware.ts';

export interface CalledRequest {
  readonly incoming: IncomingMessage;
  readonly target: string | undefined;
}

/** The parts of a type of context: its request, its response, and the way for a refusal. */
interface Transport {
  /** Returns the object shared by the guards, filters and handlers of one context. */
  key(host: ArgumentsHost): object;
  /** Returns the members of which one may hold the request. */
  requests(host: ArgumentsHost): readonly unknown[];
  response(host: ArgumentsHost): unknown;
  /** Sends a refusal. The result is the result of a resolver. */
  refuse(host: ArgumentsHost, refusal: Refusal): unknown;
}

const unknownTransport: Transport = {
  key: (host) => Object(host.getArgByIndex(0)),
  requests: () => [],
  response: () => undefined,
  refuse: (_host, refusal) => new RefusedCall(refusal),
};

const transports: ReadonlyMap<string, Transport> = new Map([
  [
    'http',
    {
      ...unknownTransport,
      requests: (host) => [host.switchToHttp().getRequest()],
      response: (host) => host.switchToHttp().getResponse(),
      refuse(host, refusal) {
        const response = host.switchToHttp().getResponse<ServerResponse | Reply>();
        if (!('raw' in response)) return sendRefusal(refusal, response);
        // Bytes, because Fastify adds a charset to the type of a string.
        return response.code(refusal.status).headers(refusal.headers).send(Buffer.from(refusal.body));
      },
    },
  ],
  [
    'graphql',
    {
      ...unknownTransport,
      key: contextOf,
      // The member that Apollo or Mercurius sets, or the upgrade of subscriptions.
      requests(host) {
        const { req, request, reply, extra } = contextOf(host);
        return [req, request, reply?.request, extra?.request];
      },
      response: (host) => contextOf(host).res ?? contextOf(host).reply,
    },
  ],
  [
    'ws',
    {
      ...unknownTransport,
      key: (host) => host.switchToWs().getClient<object>(),
      // The upgrade that socket.io keeps.
      requests: (host) => [host.switchToWs().getClient<{ readonly request?: unknown }>().request],
      refuse: (host, refusal) => emitRefusal(host.switchToWs().getClient(), refusal),
    },
  ],
]);

export function transportOf(host: ArgumentsHost): Transport {
  return transports.get(host.getType<string>()) ?? unknownTransport;
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

interface Reply {
  readonly raw: ServerResponse;
  code(status: number): Reply;
  headers(values: Readonly<Record<string, string>>): Reply;
  send(body: Buffer): unknown;
}

export function findCalledRequest(host: ArgumentsHost): CalledRequest | undefined {
  return transportOf(host)
    .requests(host)
    .map((held) => readHeld(held as Held)) // it checks the members
    .find((found) => found !== undefined);
}

/** Possible member of a context: a request of `node:http`, or a request of Fastify. */
type Held = { readonly rawHeaders?: unknown; readonly raw?: unknown; readonly originalUrl?: string } | undefined;

/** Reads a request of `node:http` or of Fastify; `undefined` for every other value. */
export function readHeld(held: Held): CalledRequest | undefined {
  for (const each of [held, held?.raw as Held]) {
    // Only a request of node:http has these.
    if (Array.isArray(each?.rawHeaders)) return { incoming: each as IncomingMessage, target: held?.originalUrl };
  }
  return undefined;
}

/** Finds the response of a context; WebSockets have none. */
export function findResponse(host: ArgumentsHost): ServerResponse | undefined {
  const held = transportOf(host).response(host);
  const { raw = held } = Object(held) as { readonly raw?: unknown }; // Fastify's reply has the response in `raw`
  return typeof Reflect.get(Object(raw), 'setHeader') === 'function' ? (raw as ServerResponse) : undefined;
}

/** Code of GraphQL and message of socket.io, by the status of a refusal. */
const names: ReadonlyMap<number, readonly [code: string, message: string]> = new Map([
  [400, ['BAD_REQUEST', 'Unavailable']],
  [401, ['UNAUTHENTICATED', 'Unauthorized']],
  [403, ['FORBIDDEN', 'Forbidden']],
]);
const otherNames = ['INTERNAL_SERVER_ERROR', 'Unavailable'] as const;

/** Error that a resolver returns; servers read status and headers from `http`. */
class RefusedCall extends Error {
  readonly extensions: object;

  constructor({ status, headers }: Refusal) {
    super(
      status === 401 || status === 403
        ? 'The access token does not allow this operation.'
        : 'The request could not be validated.',
    );
    const [code] = names.get(status) ?? otherNames;
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
  const [, message] = names.get(status) ?? otherNames;
  const report = { status: 'error', message };
  if (client.handshake === undefined) client.send(JSON.stringify({ event: 'exception', data: report }));
  else client.emit('exception', report);
}
