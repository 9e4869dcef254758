import { attempt } from '../../core/attempt.ts';
import type { EventReceiver } from '../../core/http/event-post.ts';
import { readBytes } from '../../core/outbound/outbound.ts';
import type { ResourceServer } from '../../core/resource-server/resource-server.ts';
import {
  type BackchannelLogoutOptions,
  openBackchannelLogout,
} from '../../core/revocation/logout/backchannel-logout.ts';
import { openSignalsReceiver, type SignalsReceiverOptions } from '../../core/revocation/signals/receiver.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';

/** Options of `createBackchannelLogout` on platforms that do not name the sender of a request. */
export interface WebLogoutOptions extends BackchannelLogoutOptions {
  /**
   * Names the sender of a request, such as its address; invalid tokens are limited by sender. Default: the address that a
   * trusted proxy forwards, otherwise none, and no limit.
   */
  readonly peer?: (request: Request) => string | undefined;
}

/** Responds to a web-standard request; `undefined` for every other path. */
export type WebReceiver = (request: Request) => Promise<Response> | undefined;

/** A receiver with connections to close. */
export type ClosableWebReceiver = WebReceiver & {
  /** Ends all streams of this process. The transmitter keeps them. */
  close(): void;
};

/**
 * Creates a handler that receives logout tokens (OpenID Connect Back-Channel Logout 1.0) at `/backchannel-logout`. The server
 * needs `revocations`. Throws `TypeError` for invalid options.
 *
 * @example
 * const receiveLogout = createBackchannelLogout(resourceServer, { clientIds: ['app', 'spa'] });
 * const respond = (request: Request) => receiveLogout(request) ?? new Response('another path');
 */
export function createBackchannelLogout(
  server: ResourceServer<RegisteredClaims>,
  { peer, ...options }: WebLogoutOptions,
): WebReceiver {
  if (peer !== undefined && typeof peer !== 'function') throw new TypeError('peer: write a function of the request');
  return receiveEvents(openBackchannelLogout(server, options), peer);
}

/**
 * Creates a handler that receives security events (Shared Signals Framework 1.0) below `/shared-signals/`, and registers its
 * streams in the background. The server needs `revocations`. Throws `TypeError` for invalid options.
 */
export function createSignalsReceiver(
  server: ResourceServer<RegisteredClaims>,
  options: SignalsReceiverOptions,
): ClosableWebReceiver {
  const signals = openSignalsReceiver(server, options);
  return Object.assign(receiveEvents(signals), { close: signals.close });
}

function receiveEvents(receiver: EventReceiver, peer?: WebLogoutOptions['peer']): WebReceiver {
  return (request) => {
    const path = new URL(request.url).pathname;
    if (!receiver.serves(path)) return undefined;
    const readBody = async (maxBytes: number) => (await readBytes(request.body, { maxBytes }))?.toString('utf8') ?? 413;
    return receiver
      .respond({ request, connection: undefined, peer: attempt(peer, request), readBody }, path)
      .then(({ status, headers, body }) => new Response(body === '' ? null : body, { status, headers }));
  };
}
