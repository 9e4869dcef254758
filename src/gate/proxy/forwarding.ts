import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AccessError } from '../../failures.ts';
import type { ExternalUrl } from '../../http/external-url.ts';

/** Names and values that say who the caller is. */
export interface Identity {
  /** One list for all requests of one set of rules: what is removed from requests is worked out once for each list. */
  readonly names: readonly string[];
  /** By the place of their name. Characters from space to `~` only. */
  readonly values: readonly string[];
}

/** Whether the upstream gets `Authorization` and `DPoP` of the caller. */
export type Credentials = 'forward' | 'remove';

/** The connection under a request for an upgrade: taken once the upstream has agreed. */
export type TakeSocket = () => { readonly socket: Duplex; readonly head: Buffer };

/** One request that may pass. */
export interface Forwarding {
  readonly incoming: IncomingMessage;
  /** Headers that were set on it, such as `DPoP-Nonce`, go with the answer of the upstream. */
  readonly outgoing: ServerResponse;
  /** Present if the client asks for an upgrade. Only WebSocket is passed on; another is left out, as RFC 9110 §7.8 allows. */
  readonly takeSocket?: TakeSocket | undefined;
  readonly identity: Identity;
  /** The URL as the client used it: X-Forwarded-Proto, -Host and -Prefix are made of it. */
  readonly externalUrl: ExternalUrl;
  /** Whether the peer is one whose X-Forwarded-For is believed, and goes on. */
  readonly isPeerTrusted: boolean;
  readonly credentials: Credentials;
  /** The client, as {@link namePeer} names it; one without an address has no part of its own. */
  readonly client: string;
  /** Answers with the refusal; called at most once, and only while nothing of an answer was sent. */
  readonly refuse: (error: AccessError) => void;
  /** Told if the answer was begun and could not be finished. The connection of the client is closed then. */
  readonly onCut?: (error: AccessError) => void;
  /** Called once, when nothing more will be sent to the client. */
  readonly onDone?: () => void;
}
