import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';

/** What is sent to an instance or to the URL of clients. */
export interface CallOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds for everything. */
  readonly timeout: number;
}

/** What came back; at most 64 KiB of the body are read. */
export interface CallAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

const maxBody = 64 * 1024;

/** Calls directly, without a proxy, as a client in this place would. Rejects with the error of the socket. */
export function call(url: URL, { method = 'GET', headers = {}, timeout }: CallOptions): Promise<CallAnswer> {
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = send(url, { method, headers, agent: false, signal: AbortSignal.timeout(timeout) }, (response) => {
      readBody(response).then((body) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
        sent.destroy();
      }, reject);
    });
    sent.once('error', reject);
    sent.end();
  });
}

async function readBody(response: IncomingMessage): Promise<string> {
  let body = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    body += String(chunk);
    if (body.length > maxBody) break;
  }
  return body;
}

/** A header that stands once, or its first line. */
export function headerOf({ headers }: CallAnswer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

/** The code of an error, such as ECONNREFUSED: never its message, which may hold an address with a password. */
export function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown }; // both are looked at below
  if (name === 'TimeoutError' || name === 'AbortError') return 'no answer in time';
  return typeof code === 'string' ? code : typeof name === 'string' ? name : 'unknown error';
}

/** Whether an https call has met a server that speaks plain HTTP. */
export function isPlainHttp(error: unknown): boolean {
  return /^(?:EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/.test(codeOf(error));
}
