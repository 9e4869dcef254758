/** Where a request comes from and what it is meant for. */
export interface Endpoints {
  /** Address of the other end of the socket. */
  readonly peer: string | undefined;
  /** The Host header. */
  readonly host: string | undefined;
}

/**
 * Whether a request comes from this machine and is meant for it. The Host header counts too: a page on a foreign
 * name that resolves to a loopback address (DNS rebinding) gets no further than this.
 */
export function isLocalRequest({ peer = '', host = '' }: Endpoints): boolean {
  return /^(?:(?:::ffff:)?127\.|::1$)/.test(peer) && /^(?:localhost|127\.0\.0\.1)(?::\d+)?$/i.test(host);
}

/** Whether a web origin is a page on this machine. */
export function isLoopbackOrigin(origin: string): boolean {
  return /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(origin);
}
