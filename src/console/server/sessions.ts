import { hash, randomBytes } from 'node:crypto';

/** Browsers that may be in at once: the oldest has to come in again. */
const maxSessions = 4;
/** Milliseconds. */
const lifetime = 12 * 3600 * 1000;

/** The browsers that have come in with a key. */
export interface Sessions {
  /** The value of Set-Cookie for one more browser. */
  open(port: number | undefined): string;
  /** Whether the Cookie header is that of a browser that has come in. */
  has(cookies: string | undefined, port: number | undefined): boolean;
}

/** Creates the sessions. They are kept in memory, by the hash of their secret. */
export function createSessions(now: () => number = Date.now): Sessions {
  const ends = new Map<string, number>();
  return {
    open(port) {
      const secret = randomBytes(32).toString('base64url');
      const [oldest] = ends.keys();
      if (ends.size >= maxSessions && oldest !== undefined) ends.delete(oldest);
      ends.set(digest(secret), now() + lifetime);
      return `${nameCookie(port)}=${secret}; Path=/console; HttpOnly; SameSite=Strict; Max-Age=${lifetime / 1000}`;
    },
    has(cookies = '', port) {
      const start = `${nameCookie(port)}=`;
      const values = cookies
        .split(/; */)
        .filter((cookie) => cookie.startsWith(start))
        .map((cookie) => cookie.slice(start.length));
      return values.some((secret) => (ends.get(digest(secret)) ?? 0) > now());
    },
  };
}

/** Browsers keep one jar for all ports of a host. */
function nameCookie(port: number | undefined): string {
  return `portcullis_console_${port ?? 0}`;
}

function digest(secret: string): string {
  return hash('sha256', secret, 'base64url');
}
