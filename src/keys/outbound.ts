import { type JsonObject, parseJsonObject } from '../token/json.ts';
import {
  type ByteStream,
  createHttpClient,
  type Fetch,
  type FetchResponse,
  type HttpClient,
  type HttpClientOptions,
} from './http-client.ts';
import { KeyFetchError, toKeyFetchError } from './key-fetch-error.ts';

/** Bounds of one call. */
export interface FetchLimits {
  /** Seconds for everything: connecting, the proxy, the answer to its last byte. */
  readonly timeoutSeconds: number;
  /** Bytes of the body, after decompression. */
  readonly maxBytes: number;
}

/** A JSON document of the identity provider. */
export interface FetchedJson {
  readonly value: JsonObject;
  /** `max-age` of the answer (RFC 9111 §5.2.2.1), in seconds. */
  readonly maxAge: number | undefined;
}

/** GETs a JSON object within the limits, following no redirect; rejects with `KeyFetchError`. Not https: `TypeError`. */
export type FetchJson = (url: string, limits: FetchLimits) => Promise<FetchedJson>;

/** The way out to the identity provider. */
export interface Outbound {
  readonly fetchJson: FetchJson;
  /** Ends calls in flight with `closed`, drops every connection, and refuses new calls. */
  close(): void;
}

/** How the identity provider is reached. */
export interface OutboundOptions extends HttpClientOptions {
  /** Used in place of the built-in client: without its proxy and `ca`, within the same limits. */
  readonly fetch?: Fetch;
}

/** Makes the way out; nothing is connected before the first call. A malformed option: `TypeError`. */
export function createOutbound(options: OutboundOptions = {}): Outbound {
  const client = options.fetch === undefined ? createHttpClient(options) : borrow(options.fetch);
  const inFlight = new Set<AbortController>();
  let closed = false;
  return {
    async fetchJson(url, { timeoutSeconds, maxBytes }) {
      if (!url.startsWith('https://')) throw new TypeError('Only https URLs are fetched.');
      if (closed) throw new KeyFetchError('closed');
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(new KeyFetchError('timeout')), timeoutSeconds * 1000);
      inFlight.add(controller);
      try {
        // The race binds also a `fetch` that does not heed its signal.
        return await Promise.race([aborted(controller.signal), getJson(url, maxBytes, controller.signal)]);
      } catch (error) {
        controller.abort(); // lets go of a body that was not read to its end
        throw toKeyFetchError(error);
      } finally {
        clearTimeout(timer);
        inFlight.delete(controller);
      }
    },
    close() {
      closed = true;
      for (const controller of inFlight) controller.abort(new KeyFetchError('closed'));
      client.close();
    },
  };

  async function getJson(url: string, maxBytes: number, signal: AbortSignal): Promise<FetchedJson> {
    const response = await client.fetch(url, {
      method: 'GET',
      headers: { accept: 'application/json' },
      redirect: 'manual',
      signal,
    });
    const { status, redirected, body, headers } = response;
    // A runtime that hides an answer with a redirect gives it the status 0.
    if (redirected || status === 0 || (status >= 300 && status < 400)) throw new KeyFetchError('redirect');
    if (status !== 200) throw new KeyFetchError('status', { detail: String(status) });
    const value = parseJsonObject(await readBody(body, maxBytes));
    if (value === undefined) throw new KeyFetchError('not_json');
    return { value, maxAge: readMaxAge(headers.get('cache-control')) };
  }
}

/** A `fetch` of the caller's: its connections are not ours to close. */
function borrow(fetch: Fetch): HttpClient {
  return { fetch, close: () => undefined };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

async function readBody(body: FetchResponse['body'], maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of readChunks(body)) {
    size += chunk.length;
    if (size > maxBytes) throw new KeyFetchError('too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function readChunks(body: FetchResponse['body']): AsyncIterable<Uint8Array> | readonly Uint8Array[] {
  if (body === null) return [];
  return Symbol.asyncIterator in body ? body : iterate(body);
}

async function* iterate(body: ByteStream): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { value } = await reader.read();
      if (value === undefined) return;
      yield value;
    }
  } finally {
    // What is left is not wanted; where nothing is, this does nothing.
    reader.cancel().catch(() => undefined);
  }
}

/** The first `max-age` counts (RFC 9111 §4.2.1); `s-maxage` is for shared caches. */
function readMaxAge(cacheControl: string | null): number | undefined {
  const digits = cacheControl?.match(/(?:^|[\s,])max-age="?(\d{1,10})/i)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
