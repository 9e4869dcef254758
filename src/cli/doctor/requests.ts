import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { createHttpClient } from '../../core/outbound/http-client.ts';
import { readProxyAddress } from '../../core/outbound/https-address.ts';
import { type ProviderError, toProviderError } from '../../core/outbound/provider-error.ts';

export interface HttpRequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Limit of the request, in milliseconds. */
  readonly timeout: number;
}

/** Response with at most 64 KiB of its body. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

/** Limits of bodies, in bytes. */
const maxBody = 64 * 1024;
const maxDocument = 256 * 1024;

/** Sends a request without a proxy. Rejects with the error of the socket. */
export function sendRequest(
  url: URL,
  { method = 'GET', headers = {}, timeout }: HttpRequestOptions,
): Promise<HttpResponse> {
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = send(url, { method, headers, agent: false, signal: AbortSignal.timeout(timeout) }, (response) => {
      readBody(response, maxBody).then((body) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
        sent.destroy();
      }, reject);
    });
    sent.once('error', reject);
    sent.end();
  });
}

/** Reads a body, up to the chunk that exceeds the limit. */
async function readBody(stream: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limit) break;
  }
  return Buffer.concat(chunks).toString();
}

export function headerOf({ headers }: HttpResponse, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

export function describeTimeout(timeout: number): string {
  return `no response within ${timeout / 1000} s`;
}

/** Describes an error by its code, such as ECONNREFUSED. Messages may contain an address with a password. */
export function describeError(error: unknown, timeout: number): string {
  if (error instanceof AggregateError) return describeError(error.errors[0], timeout);
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown }; // both are checked below
  if (name === 'TimeoutError' || name === 'AbortError') return describeTimeout(timeout);
  return typeof code === 'string' ? code : typeof name === 'string' ? name : 'unknown error';
}

/** Reports whether an https request met a server that speaks plain HTTP. */
export function isPlainHttp(error: unknown): boolean {
  return /^(?:EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/.test(describeError(error, 0));
}

interface ProviderResponse {
  readonly kind: 'response';
  readonly status: number;
  /** `undefined` if the body is not a JSON object. */
  readonly document: JsonObject | undefined;
  /** Seconds that the clock of the provider is ahead; `undefined` without a Date header. */
  readonly lead: number | undefined;
  /** Possible error of `lead`, in seconds. */
  readonly uncertainty: number;
  readonly milliseconds: number;
  readonly proxy: EgressProxy | undefined;
}

interface FailedRequest {
  readonly kind: 'failed';
  readonly error: ProviderError;
  readonly message: string;
  readonly proxy: EgressProxy | undefined;
}

export type FetchedDocument = ProviderResponse | FailedRequest;

interface FetchDocumentOptions {
  readonly environment: Environment;
  /** Additional trusted certificate, in PEM. */
  readonly ca?: string | undefined;
  /** Limit of the request, in milliseconds. */
  readonly timeout: number;
}

/** Fetches a document with the client, proxy and certificates of the service. Never rejects. */
export async function fetchDocument(
  url: string,
  { environment, ca, timeout }: FetchDocumentOptions,
): Promise<FetchedDocument> {
  const proxy = findProxy(new URL(url), environment);
  const client = createHttpClient({ environment, ...(ca !== undefined && { ca }) });
  const signal = AbortSignal.timeout(timeout);
  const sentAt = Date.now();
  try {
    const headers = { accept: 'application/json' };
    const {
      status,
      headers: received,
      body,
    } = await client.fetch(url, {
      method: 'GET',
      headers,
      redirect: 'manual',
      signal,
    });
    const respondedAt = Date.now();
    const date = Date.parse(received.get('date') ?? '');
    return {
      kind: 'response',
      status,
      document:
        body === null ? undefined : parseDocument(await readBody(body as AsyncIterable<Uint8Array>, maxDocument)), // async iterable on Node
      // Date has whole seconds: compare the middle of its second with the middle of the request.
      lead: Number.isNaN(date) ? undefined : (date + 500 - (sentAt + respondedAt) / 2) / 1000,
      uncertainty: 0.5 + (respondedAt - sentAt) / 2000,
      milliseconds: respondedAt - sentAt,
      proxy,
    };
  } catch (thrown) {
    const error = toProviderError(thrown);
    return { kind: 'failed', error, message: signal.aborted ? describeTimeout(timeout) : error.message, proxy };
  } finally {
    client.close();
  }
}

function parseDocument(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface EgressProxy {
  readonly url: URL;
  readonly variable: string;
  /** Address without user and password. */
  readonly shown: string;
}

/** Finds the proxy for a URL by the rules of the HTTP client; `undefined` for a direct connection. */
function findProxy(url: URL, environment: Environment): EgressProxy | undefined {
  const read = (name: string) => environment[name.toLowerCase()] || environment[name] || '';
  if (isExempt(url, read('NO_PROXY'))) return undefined;
  const variable = read('HTTPS_PROXY') === '' || url.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY';
  const address = readProxyAddress(read(variable));
  if (read(variable) === '' || address === undefined) return undefined;
  const proxy = new URL(address);
  return { url: proxy, variable, shown: proxy.host };
}

function isExempt({ hostname, port, protocol }: URL, list: string): boolean {
  const own = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      const [, name = '', entryPort] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
      if (entryPort !== undefined && entryPort !== own) return false;
      const bare = name.replace(/^\*?\.?/, '');
      return entry === '*' || hostname === bare || (bare !== '' && hostname.endsWith(`.${bare}`));
    });
}

/** A host without the brackets of an IPv6 address. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Reports whether a host accepts connections. */
export function accepts({ hostname, port, protocol }: URL, timeout: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({
      host: bareHost(hostname),
      port: Number(port || (protocol === 'https:' ? 443 : 80)),
      timeout,
    });
    const settle = (accepted: boolean): void => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once('connect', () => settle(true));
    socket.once('timeout', () => settle(false));
    socket.once('error', () => settle(false));
  });
}
