/**
 * Reports whether a request comes from this host and names it. The check of Host stops DNS rebinding: a page under a
 * foreign name that resolves to a loopback address.
 */
export function isLocalRequest(peer = '', host = ''): boolean {
  return /^(?:(?:::ffff:)?127\.|::1$)/.test(peer) && /^(?:localhost|127\.0\.0\.1)(?::\d+)?$/i.test(host);
}

export function isLoopbackOrigin(origin: string): boolean {
  return /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(origin);
}
