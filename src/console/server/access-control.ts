import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';

export interface ConsoleRefusal {
  readonly status: 401 | 403 | 421;
  readonly text: string;
}

export function refuseOutsiders({ headers, socket }: IncomingMessage): ConsoleRefusal | undefined {
  // Stops DNS rebinding: a page under a foreign name that resolves to a loopback address.
  if (!isLoopbackHost(headers.host)) {
    return { status: 421, text: 'Open the console under a loopback name, such as 127.0.0.1.' };
  }
  if (!isLoopbackAddress(socket.remoteAddress)) {
    return { status: 403, text: 'Open the console on the host of the service.' };
  }
  // Behind a proxy the client may be on another host, although the peer is loopback.
  if (Object.keys(headers).some((name) => name === 'forwarded' || name.startsWith('x-forwarded-'))) {
    return {
      status: 403,
      text: 'The console refuses proxied requests. Open it on the host of the service, or through an SSH tunnel.',
    };
  }
  return undefined;
}

/** Refuses requests that a browser sends for another page, even a page on another port of this host. */
export function refuseCrossOrigin({ method, headers }: IncomingMessage): ConsoleRefusal | undefined {
  const refusal: ConsoleRefusal = { status: 403, text: 'Only the console page may send this request.' };
  const site = headers['sec-fetch-site'];
  if (method === 'POST') {
    const isOwn = site === 'same-origin' && headers.origin === `http://${headers.host}`;
    return isOwn ? undefined : refusal;
  }
  // Any page may link to the console. The browser omits the cookie then (SameSite=Strict).
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  return site === undefined || site === 'same-origin' || site === 'none' || isNavigation ? undefined : refusal;
}

/** Reports whether a browser prefetches the page. A prefetch must not use up the key. */
export function isPrefetch({ headers }: IncomingMessage): boolean {
  return headers['sec-purpose'] !== undefined || headers['purpose'] === 'prefetch';
}

function isLoopbackHost(header: string | undefined): boolean {
  const name = header?.toLowerCase().replace(/:\d{1,5}$/, '') ?? '';
  return name === '[::1]' || isLoopbackAddress(name) || /^(?:[a-z0-9-]+\.)*localhost$/.test(name);
}

function isLoopbackAddress(address: string | undefined): boolean {
  const plain = address?.replace(/^::ffff:/i, '') ?? '';
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}
