import { type RequestOptions, request } from 'node:https';
import { buffer } from 'node:stream/consumers';

/** A request over TLS that trusts one certificate. */
export type Call = (url: string | URL, init?: CallInit) => Promise<Response>;

export interface CallInit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Redirects are not followed, and any header can be set, Host included. */
export function createCall(certificate: string): Call {
  return (url, { method = 'GET', headers = {}, body = '' } = {}) =>
    new Promise((resolve, reject) => {
      const options: RequestOptions = { method, headers, ca: certificate, agent: false, servername: 'localhost' };
      const sent = request(url, options, (response) => {
        const answered = new Headers();
        for (const [name, values = []] of Object.entries(response.headersDistinct)) {
          for (const value of values) answered.append(name, value);
        }
        buffer(response).then((bytes) => {
          const { statusCode: status = 0 } = response;
          resolve(new Response(bytes.length === 0 ? null : new Uint8Array(bytes), { status, headers: answered }));
        }, reject);
      });
      sent.on('error', reject).end(String(body ?? ''));
    });
}
