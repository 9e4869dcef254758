import { hash, randomBytes } from 'node:crypto';

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

/** The port is part of the name, because browsers share cookies between the ports of a host. */
function nameCookie(port: number | undefined): string {
  return `portcullis_console_${port ?? 0}`;
}

function digest(secret: string): string {
  return hash('sha256', secret, 'base64url');
}
