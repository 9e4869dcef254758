import { refuseOnWorkerd } from '../platform.ts';
import type { HttpClient, HttpClientOptions } from './http-client.ts';

/**
 * Makes a client of the platform's own `fetch`: workerd has no sockets that undici could use. A `ca` there: `TypeError`.
 */
export function createWorkerdClient({ ca }: HttpClientOptions): HttpClient {
  if (ca !== undefined) refuseOnWorkerd('ca', 'where only the platform says which certificates are trusted');
  return {
    // Not as a method of anything: the platform would refuse it.
    fetch: (url, init) => fetch(url, init),
    close: () => undefined,
  };
}
