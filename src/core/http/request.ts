/** The parts of a request that are read; a web-standard `Request` has them. */
export interface ResourceRequest {
  /** HTTP method. */
  readonly method: string;
  /** Absolute URL. */
  readonly url: string;
  /** The path and query as sent, if the URL was built from it and Host. */
  readonly target?: string | undefined;
  /** `entries` are the lines, or joined lines; only conditions of the gate's rules read them. */
  readonly headers: { get(name: string): string | null; entries?(): Iterable<readonly [string, string]> };
  /**
   * Set by adapters that apply several policies to one request: the same server has accepted the proof of this very request
   * before, so it is not refused as replayed.
   */
  readonly proofWitnessed?: boolean | undefined;
  /** Set by the gate: the request as the condition of its rule reads it. */
  readonly conditionCall?: object | undefined;
}

/** The transport under a request, where the runtime tells it; a Node socket already is one. */
export interface Connection {
  /** Address of the peer, IPv4 or IPv6. */
  readonly remoteAddress?: string | undefined;
  /** Present and true on TLS. */
  readonly encrypted?: boolean | undefined;
  /** The client's certificate on TLS (RFC 8705), `raw` in DER. Called if tokens may be bound to certificates. */
  getPeerCertificate?(): { readonly raw?: Uint8Array | undefined } | null | undefined;
}

const jwt = /eyJ[\w-]{8}[\w.-]*/g;

/** Returns the path that the client sent, without its query. */
export function cutSentPath({ target, url }: ResourceRequest): string {
  const sent = target ?? url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '');
  return sent.slice(0, sent.search(/[?#]|$/));
}

/** Returns the path that the client sent, without its query; a token in it is masked. */
export function readSentPath(request: ResourceRequest): string {
  const path = cutSentPath(request);
  return path.includes('eyJ') ? path.replace(jwt, '***') : path;
}
