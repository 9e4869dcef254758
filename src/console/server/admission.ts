import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';

/** A refusal of the console: its status, and a text for the person before it. */
export interface ConsoleRefusal {
  readonly status: 401 | 403 | 421;
  readonly text: string;
}

/** Refuses what does not come from this machine, or is not meant for it. */
export function refuseOutsiders({ headers, socket }: IncomingMessage): ConsoleRefusal | undefined {
  // A page on a foreign name that resolves to a loopback address (DNS rebinding) gets no further than this.
  if (!isLoopbackHost(headers.host)) {
    return { status: 421, text: 'The console answers under names of this machine only, such as 127.0.0.1.' };
  }
  if (!isLoopbackAddress(socket.remoteAddress)) {
    return { status: 403, text: 'The console answers on this machine only.' };
  }
  // Whoever is behind a proxy is not on this machine, whatever the address of the peer says.
  if (Object.keys(headers).some((name) => name === 'forwarded' || name.startsWith('x-forwarded-'))) {
    return { status: 403, text: 'The console answers no proxy. Open it on this machine, or through an SSH tunnel.' };
  }
  return undefined;
}

/** Refuses what another page has a browser send: also one on another port of this machine. */
export function refuseForeignPage({ method, headers }: IncomingMessage): ConsoleRefusal | undefined {
  const refusal: ConsoleRefusal = { status: 403, text: 'Only the page of the console may send this.' };
  const site = headers['sec-fetch-site'];
  if (method === 'POST') {
    const isOwn = site === 'same-origin' && headers.origin === `http://${headers.host}`;
    return isOwn ? undefined : refusal;
  }
  // A link leads here from anywhere; the cookie stays behind then.
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  return site === undefined || site === 'same-origin' || site === 'none' || isNavigation ? undefined : refusal;
}

/** Whether a browser only looks ahead: nobody has asked for this yet. */
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
