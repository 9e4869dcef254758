import type { EventReceiver } from '../../http/event-post.ts';
import { type BackchannelLogoutOptions, openBackchannelLogout } from '../../logout/backchannel-logout.ts';
import type { ResourceServer } from '../../resource-server/resource-server.ts';
import { openSignalsReceiver, type SignalsReceiverOptions } from '../../signals/receiver.ts';
import type { RegisteredClaims } from '../../token/claims.ts';

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
  options: BackchannelLogoutOptions,
): WebReceiver {
  return receiveEvents(openBackchannelLogout(server, options));
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

function receiveEvents(receiver: EventReceiver): WebReceiver {
  return (request) => {
    const path = new URL(request.url).pathname;
    if (!receiver.serves(path)) return undefined;
    const readBody = (maxBytes: number): Promise<string | undefined> => readWebBody(request, maxBytes);
    return receiver
      .respond({ request, connection: undefined, readBody }, path)
      .then(({ status, headers, body }) => new Response(body === '' ? null : body, { status, headers }));
  };
}

async function readWebBody(request: Request, maxBytes: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (;;) {
    const { value } = (await reader?.read()) ?? {};
    if (value === undefined) return Buffer.concat(chunks).toString('utf8');
    size += value.length;
    if (size <= maxBytes) chunks.push(value);
    else {
      await reader?.cancel();
      return undefined;
    }
  }
}
