import { listCases, type Make } from './row.ts';

/** The bytes that the client sends before it hangs. */
const stall =
  (...lines: readonly string[]): Make =>
  () => ({ raw: lines.join('\r\n') });

/** Attacks by clients that hold a connection and say no more; the service ends each within 16 s. */
export const slowClients = listCases([
  {
    attack: 'connection that is held open',
    source: 'CWE-400, CVE-2007-6750, CVE-2018-12122',
    status: 408,
    cases: [
      ['half a request line', stall('GET /api/pri')],
      ['headers that never end', stall('GET /api/private HTTP/1.1', 'Host: localhost', 'X-A: b')],
      ['a token that never ends', stall('GET /api/private HTTP/1.1', 'Host: localhost', 'Authorization: Bearer eyJh')],
    ],
  },
]);
