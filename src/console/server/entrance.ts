import { hash, randomBytes } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';
import { isSameSecret } from '../../core/http/same-secret.ts';

export interface EntranceRefusal {
  readonly status: 403 | 421;
  readonly text: string;
}

export function refuseOutsiders({ headers, socket }: IncomingMessage): EntranceRefusal | undefined {
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
  return undefined;
}

/** Refuses requests that a browser sends for another page, even a page on another port of this host. */
export function refuseCrossOrigin({ method, headers }: IncomingMessage): EntranceRefusal | undefined {
  const site = headers['sec-fetch-site'];
  const isOwn =
    method === 'POST'
      ? site === 'same-origin' && headers.origin === `http://${headers.host}`
      : site === undefined || site === 'same-origin' || site === 'none' || isNavigation(headers);
  return isOwn ? undefined : { status: 403, text: 'Only the console page may send this request.' };
}

/** Any page may link to the console. The browser omits the cookie then (SameSite=Strict). */
function isNavigation(headers: IncomingMessage['headers']): boolean {
  return headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
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

/** One-time key of the console. A page uses it up; `explain` reads its file and does not. */
export interface ConsoleKey {
  matches(text: string): boolean;
  /** Uses up the key if it matches, and creates the next one. Resolves when the file holds it. */
  take(text: string): Promise<boolean>;
  close(): Promise<void>;
}

/** Creates a key and its file. Rejects if the file cannot be written. `onProblem` is called if a later key cannot be. */
export async function openConsoleKey(file: string, onProblem: (error: unknown) => void): Promise<ConsoleKey> {
  let key = makeSecret();
  await writeSecret(file, key);
  let writing = Promise.resolve();
  const matches = (text: string): boolean => isSameSecret(text, key);
  return {
    matches,
    async take(text) {
      if (!matches(text)) return false;
      key = makeSecret();
      const next = key;
      writing = writing.then(() => writeSecret(file, next)).catch(onProblem);
      await writing;
      return true;
    },
    async close() {
      await writing;
      await rm(file, { force: true });
    },
  };
}

/** Replaces the file atomically by a new one, which no other process can have open. */
async function writeSecret(file: string, secret: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(temporary, `${secret}\n`, { mode: 0o600, flag: 'wx' });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function makeSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Maximum number of sessions. A new one replaces the oldest. */
const maxSessions = 4;
/** Lifetime of a session, in milliseconds. */
const lifetime = 12 * 3600 * 1000;

export interface Sessions {
  /** Starts a session. Returns the value of Set-Cookie. */
  open(port: number | undefined): string;
  has(cookies: string | undefined, port: number | undefined): boolean;
}

/** Creates the sessions, in memory and by the hash of their secret. */
export function createSessions(): Sessions {
  const ends = new Map<string, number>();
  // Browsers share cookies between the ports of a host.
  const nameCookie = (port: number | undefined): string => `portcullis_console_${port ?? 0}`;
  const digest = (secret: string): string => hash('sha256', secret, 'base64url');
  return {
    open(port) {
      const secret = makeSecret();
      const [oldest] = ends.keys();
      if (ends.size >= maxSessions && oldest !== undefined) ends.delete(oldest);
      ends.set(digest(secret), Date.now() + lifetime);
      return `${nameCookie(port)}=${secret}; Path=/console; HttpOnly; SameSite=Strict; Max-Age=${lifetime / 1000}`;
    },
    has(cookies = '', port) {
      const start = `${nameCookie(port)}=`;
      return cookies
        .split(/; */)
        .some((cookie) => cookie.startsWith(start) && (ends.get(digest(cookie.slice(start.length))) ?? 0) > Date.now());
    },
  };
}
