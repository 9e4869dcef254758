import type { IncomingMessage } from 'node:http';
import type { EventReceiver } from '../../core/http/event-post.ts';
import type { ResourceServer } from '../../core/resource-server/resource-server.ts';
import {
  type BackchannelLogoutOptions,
  openBackchannelLogout,
} from '../../core/revocation/logout/backchannel-logout.ts';
import { openSignalsReceiver, type SignalsReceiverOptions } from '../../core/revocation/signals/receiver.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { type NodeMiddleware, sendRefusal } from '../node-middleware.ts';
import { checkNodeHttp, readNodeBody, readNodeRequest } from '../node-request.ts';

/** Middleware with connections to close. */
export type ClosableMiddleware = NodeMiddleware & {
  /** Ends all streams of this process. The transmitter keeps them. */
  close(): void;
};

/**
 * Creates middleware that receives logout tokens (OpenID Connect Back-Channel Logout 1.0) at `/backchannel-logout`. The server
 * needs `revocations`. Mount it at the root. Throws `TypeError` for invalid options.
 *
 * @example
 * app.use(createBackchannelLogout(resourceServer, { clientIds: ['app', 'spa'] }));
 */
export function createBackchannelLogout(
  server: ResourceServer<RegisteredClaims>,
  options: BackchannelLogoutOptions,
): NodeMiddleware {
  checkNodeHttp('createBackchannelLogout');
  return receiveEvents(openBackchannelLogout(server, options));
}

/**
 * Creates middleware that receives security events (Shared Signals Framework 1.0) below `/shared-signals/`, and registers its
 * streams in the background. The server needs `revocations`. Mount it at the root. Throws `TypeError` for invalid options.
 *
 * @example
 * app.use(createSignalsReceiver(resourceServer, { streams: { okta: {
 *   transmitter: 'https://example.okta.com', issuer: 'https://example.okta.com/oauth2/default',
 *   audience: 'https://api.example', authorization: `Bearer ${secret}`,
 * } } }));
 */
export function createSignalsReceiver(
  server: ResourceServer<RegisteredClaims>,
  options: SignalsReceiverOptions,
): ClosableMiddleware {
  checkNodeHttp('createSignalsReceiver');
  const signals = openSignalsReceiver(server, options);
  return Object.assign(receiveEvents(signals), { close: signals.close });
}

function receiveEvents(receiver: EventReceiver): NodeMiddleware {
  return (incoming, outgoing, next) => {
    const target = incoming.originalUrl ?? String(incoming.url);
    const path = target.replace(/\?.*$/s, '');
    if (!receiver.serves(path)) return next();
    const request = readNodeRequest(incoming, target);
    const readBody = (maxBytes: number): Promise<string | 413> => readParsedBody(incoming, maxBytes);
    receiver.respond({ request, connection: incoming.socket, readBody }, path).then((response) => {
      if (!incoming.complete) outgoing.shouldKeepAlive = false;
      sendRefusal(response, outgoing);
    }, next);
  };
}

/** Reads a body that a parser of the framework may have read before. */
async function readParsedBody(
  incoming: IncomingMessage & { readonly body?: unknown },
  maxBytes: number,
): Promise<string | 413> {
  const { body } = incoming;
  if (body === undefined || incoming.readable) return readNodeBody(incoming, maxBytes);
  const text = formatBody(body);
  return Buffer.byteLength(text) > maxBytes ? 413 : text;
}

/** Restores a parsed body: a string, bytes, or the fields of a form. */
export function formatBody(body: unknown): string {
  if (typeof body === 'string') return body;
  if (body instanceof Uint8Array) return Buffer.from(body).toString('utf8');
  const fields = Object.entries(Object(body) as Readonly<Record<string, unknown>>);
  return new URLSearchParams(
    fields.flatMap(([name, value]) => [value].flat().map((each): [string, string] => [name, String(each)])),
  ).toString();
}
