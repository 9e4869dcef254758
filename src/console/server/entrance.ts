import { createHmac, randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';
import { isSameSecret } from '../../core/http/same-secret.ts';
import { replaceFile } from '../../server/lifecycle/file.ts';

/** Refuses other hosts, and what a browser sends for another page, even a page on another port of this host. */
export function refuseOutsiders({ method, headers, socket }: IncomingMessage) {
  // Stops DNS rebinding: a page under a foreign name that resolves to a loopback address.
  if (!isLoopbackHost(headers.host)) {
    return { status: 421, text: 'Open the console under a loopback name, such as 127.0.0.1.' };
  }
  if (!isLoopbackAddress(socket.remoteAddress)) {
    return { status: 403, text: 'Open the console on the host of the service.' };
  }
  // Behind a proxy the client may be on another host, although the peer is loopback.
  if (Object.keys(headers).some((name) => name === 'forwarded' || name.startsWith('x-forwarded-'))) {
    const advice = 'Open it on the host of the service, or through an SSH tunnel.';
    return { status: 403, text: `The console refuses proxied requests. ${advice}` };
  }
  const site = headers['sec-fetch-site'];
  // Any page may link to the console. The browser omits the cookie then (SameSite=Strict).
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  const isOwn =
    method === 'POST'
      ? site === 'same-origin' && headers.origin === `http://${headers.host}`
      : site === undefined || site === 'same-origin' || site === 'none' || isNavigation;
  return isOwn ? undefined : { status: 403, text: 'Only the console page may send this request.' };
}

function isLoopbackHost(header: string | undefined): boolean {
  const name = header?.toLowerCase().replace(/:\d{1,5}$/, '') ?? '';
  return name === '[::1]' || isLoopbackAddress(name) || /^(?:[a-z0-9-]+\.)*localhost$/.test(name);
}

function isLoopbackAddress(address: string | undefined): boolean {
  const plain = address?.replace(/^::ffff:/i, '') ?? '';
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}

/** Lifetime of a cookie, in seconds. */
const lifetime = 12 * 3600;

export type ConsoleKey = Awaited<ReturnType<typeof openConsoleKey>>;

/** Makes the key of this start, and its file. Rejects if the file cannot be written. */
export async function openConsoleKey(file: string) {
  const key = randomBytes(32).toString('base64url');
  const sign = (end: string): string => createHmac('sha256', key).update(end).digest('base64url');
  // Browsers share cookies between the ports of a host.
  const nameCookie = (port: number | undefined): string => `portcullis_console_${port}=`;
  await replaceFile(file, `${key}\n`);
  return {
    matches: (sent: string): boolean => isSameSecret(sent, key),
    /** Writes the value of Set-Cookie: its end, signed by the key. The browser does not keep the key. */
    writeCookie(port: number | undefined): string {
      const end = String(Math.floor(Date.now() / 1000) + lifetime);
      return `${nameCookie(port)}${end}.${sign(end)}; Path=/console; HttpOnly; SameSite=Strict; Max-Age=${lifetime}`;
    },
    hasCookie(cookies: string | undefined, port: number | undefined): boolean {
      const name = nameCookie(port);
      return (cookies?.split(/; */) ?? []).some((cookie) => {
        const [end = '', signature = ''] = cookie.slice(name.length).split('.');
        return cookie.startsWith(name) && isSameSecret(signature, sign(end)) && Number(end) > Date.now() / 1000;
      });
    },
    /** Removes the file, unless a later start has replaced it. */
    async close(): Promise<void> {
      const found = await readFile(file, 'utf8').catch(() => '');
      if (found.trim() === key) await rm(file, { force: true });
    },
  };
}
