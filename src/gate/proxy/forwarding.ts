import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ExternalUrl } from '../../http/external-url.ts';
import type { HeldBody } from '../../mcp/held-body.ts';
import type { Refused } from '../../refused.ts';
import type { HeaderList } from '../../server/http/answer.ts';

export interface Identity {
  /** One list for all requests of a set of rules: the removed headers are computed once per list. */
  readonly names: readonly string[];
  /** Values in the order of the names, with characters from space to `~` only. */
  /** `undefined` for a header that is not sent. */
  readonly values: readonly (string | undefined)[];
}

/** `forward` if the upstream gets the caller's `Authorization` and `DPoP`. */
export type CredentialForwarding = 'forward' | 'remove';

/** Detaches the connection of an upgrade request, once the upstream has agreed. */
export type TakeSocket = () => { readonly socket: Duplex; readonly head: Buffer };

export interface Forwarding {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Present for an upgrade request. Only WebSocket is forwarded; others are ignored, as RFC 9110 §7.8 allows. */
  readonly takeSocket?: TakeSocket | undefined;
  readonly identity: Identity;
  /** URL that the client called, from which X-Forwarded-Proto, -Host and -Prefix are set. */
  readonly externalUrl: ExternalUrl;
  /** True if the peer's X-Forwarded-For is trusted and forwarded. */
  readonly isPeerTrusted: boolean;
  readonly credentials: CredentialForwarding;
  /** The part of the body that was read; the rest follows. Default: none was read. */
  readonly held?: HeldBody | undefined;
  /** Sent as X-Request-Id. Default: none. */
  readonly requestId?: string;
  /** Headers, by names in lower case, that replace the client's and continue the trace in the gate's span. Default: none. */
  readonly trace?: ReadonlyMap<string, string> | undefined;
  /** First segments of the target that the upstream does not get. Default: none. */
  readonly strip?: { readonly prefix: string; readonly segments: number } | undefined;
  /** Headers for the client's response, which replace the upstream's. Default: none. */
  readonly responseHeaders?: HeaderList;
  /** True if the upstream's CORS headers replace the CORS headers of {@link Forwarding.responseHeaders}. */
  readonly prefersUpstreamCors?: boolean;
  /** Client as named by {@link namePeer}; a client without an address has no share. */
  readonly client: string;
  /** Responds with the refusal; called at most once, and only before a response has started. */
  readonly refuse: (error: Refused) => void;
  /** Called if a started response fails; the client's connection is closed then. */
  readonly onCut?: (error: Refused) => void;
  /** Called once, after the last byte for the client. */
  readonly onDone?: () => void;
}
