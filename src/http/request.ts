/** What is read of a request; a web-standard `Request` already is one. */
export interface ResourceRequest {
  readonly method: string;
  /** Absolute URL. */
  readonly url: string;
  /** The path with its query as it was sent, where the URL was put together from it and Host. */
  readonly target?: string | undefined;
  readonly headers: { get(name: string): string | null };
  /**
   * Set by adapters if they judge one request by several policies: the same server has accepted the proof of this very
   * request before, so it is not refused as one that was used before.
   */
  readonly proofWitnessed?: boolean | undefined;
}

/** The transport under a request, where the runtime tells it; a Node socket already is one. */
export interface Connection {
  /** Address of the peer, IPv4 or IPv6. */
  readonly remoteAddress?: string | undefined;
  /** Present and true on TLS. */
  readonly encrypted?: boolean | undefined;
  /**
   * The certificate that the client presented on TLS (RFC 8705): `raw` is its DER. Asked where tokens may be bound to
   * certificates.
   */
  getPeerCertificate?(): { readonly raw?: Uint8Array | undefined } | null | undefined;
}
