import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

/** One GET, with control over what a well-behaved client library would tidy up. */
export interface Call {
  /** The path, sent unchanged. */
  readonly path: string;
  /** Names and values in turn: a name may come twice. */
  readonly headers?: readonly string[];
  /** Default: host and port of the origin. */
  readonly host?: string;
  /** PEM of the authority behind an https origin. */
  readonly ca?: string;
}

/** A response. */
export interface Answer {
  readonly status: number;
  /** `WWW-Authenticate`. */
  readonly challenge: string | undefined;
  readonly body: string;
}

/** Sends a request to `scheme://host:port` on a new connection, over IPv4. Rejects if the connection breaks. */
export function call(origin: string, { path, headers = [], host, ca }: Call): Promise<Answer> {
  const { protocol, hostname, port, host: authority } = new URL(origin);
  const request = protocol === 'https:' ? requestHttps : requestHttp;
  const all = ['Host', host ?? authority, ...headers];
  const trusted = ca === undefined ? {} : { ca };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { hostname, port, path, headers: all, agent: false, family: 4, ...trusted },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          body += chunk;
        });
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, challenge: response.headers['www-authenticate'], body });
        });
      },
    );
    outgoing.on('error', reject).end();
  });
}
