import { limitTime } from '../attempt.ts';
import { showUrl } from '../http/shown-url.ts';
import { type JsonObject, parseJsonObject, withoutMark } from '../jose/json.ts';
import { isFunction, isObject, type OptionMembers } from '../option-members.ts';
import { pickByPlatform } from '../platform.ts';
import { codeOf, showText } from '../shown-text.ts';
import { version } from '../version.ts';
import {
  type ByteStream,
  type ClientIdentity,
  createHttpClient,
  createWorkerdClient,
  type Fetch,
  type FetchInit,
  type FetchResponse,
  type HttpClientOptions,
} from './http-client.ts';
import { failAt, ProviderError } from './provider-error.ts';

export interface FetchLimits {
  /** Time limit in seconds for everything: connecting, the proxy, the response to its last byte. */
  readonly timeoutSeconds: number;
  /** Bytes of the body, after decompression. */
  readonly maxBytes: number;
  /** `cut`: only the beginning of a longer body is read, and it is not decompressed. Default: it is `too_large`. */
  readonly excess?: 'cut';
}

export interface FetchedJson {
  readonly status: number;
  readonly value: JsonObject;
  /** `max-age` of the response (RFC 9111 §5.2.2.1), in seconds. */
  readonly maxAge: number | undefined;
}

/** GETs a JSON object within the limits, following no redirect. Rejects with `ProviderError`; for another scheme, with `TypeError`. */
export type FetchJson = (url: string, limits: FetchLimits) => Promise<FetchedJson>;

export interface Form {
  /** `name=value&…` (RFC 6749 appendix B). */
  readonly body: string;
  readonly authorization?: string | undefined;
  /** `read`: a JSON object with a status of 400 to 499, except 429, is returned too (RFC 6749 §5.2). */
  readonly errors?: 'read';
}

/** A response with any status, a redirect too. */
export interface AnyResponse extends Required<Pick<FetchResponse, 'status' | 'headers' | 'rawHeaders'>> {
  readonly body: Buffer;
}

export type Outbound = ReturnType<typeof createOutbound>;

/** Types that a key set and metadata have, and every other: some providers refuse requests that accept only JSON. */
const accept = 'application/json, application/jwk-set+json, */*;q=0.1';
const userAgent = `portcullis/${version}`;

const createClient = pickByPlatform({ workerd: createWorkerdClient, others: createHttpClient });

/** Options for reaching the identity provider. */
export interface OutboundOptions extends HttpClientOptions {
  /** Replaces the built-in client: without its proxy and `ca`, within the same limits. */
  readonly fetch?: Fetch;
}

export const outboundMembers: OptionMembers<OutboundOptions> = {
  ca: true,
  environment: [isObject, 'write an object with HTTPS_PROXY, such as process.env'],
  fetch: [isFunction, 'write a function such as the global fetch'],
};

/** One request; what is absent is not sent. */
interface Call extends Pick<FetchInit, 'method'> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly type?: string;
  readonly authorization?: string | undefined;
  readonly body?: string;
}

/** Opens the way out, with at most `connections` (default 1) to one host. `insecure` allows http. A malformed option: `TypeError`. */
export function createOutbound(
  options: OutboundOptions & ClientIdentity & { readonly insecure?: boolean } = {},
  connections?: number,
) {
  // The connections of a `fetch` of the caller's are not ours to close.
  const { fetch, close } = options.fetch === undefined ? createClient(options, connections) : { fetch: options.fetch };
  const inFlight = new Set<AbortController>();
  let closed = false;
  const schemes = options.insecure === true ? /^https?:\/\// : /^https:\/\//;

  async function send<T>(
    url: string,
    { method, headers: given, type, authorization, body }: Call,
    { timeoutSeconds, ...bounds }: FetchLimits,
    read: (response: FetchResponse, reading: Reading) => Promise<T>,
  ): Promise<T> {
    if (!schemes.test(url)) throw new TypeError('Only https URLs are fetched.');
    if (closed) throw new ProviderError('closed');
    const controller = new AbortController();
    const { signal } = controller;
    inFlight.add(controller);
    const headers = {
      ...{ accept, 'user-agent': userAgent, ...given },
      ...(authorization !== undefined && { authorization }),
      ...(type !== undefined && { 'content-type': type }),
    };
    const reading: Reading = { ...bounds };
    const fetchAndRead = async (): Promise<T> => {
      const init = { method, headers, ...(body !== undefined && { body }), redirect: 'manual', signal } as const;
      const response = await fetch(url, init);
      reading.bytes = 0;
      return read(response, reading);
    };
    try {
      // The race binds also a `fetch` that does not heed its signal.
      const settled = Promise.race([aborted(signal), fetchAndRead()]);
      return await limitTime(settled, timeoutSeconds, () => Promise.reject(timedOut(reading)));
    } catch (error) {
      controller.abort(); // lets go of a body that was not read to its end
      return failAt(url)(error);
    } finally {
      inFlight.delete(controller);
    }
  }

  return {
    fetchJson: (url: string, limits: FetchLimits): Promise<FetchedJson> =>
      send(url, { method: 'GET' }, limits, readJson),
    /** POSTs a form as `fetchJson` GETs, and reads a JSON object from the response. */
    postForm: (url: string, { errors, ...form }: Form, limits: FetchLimits): Promise<FetchedJson> =>
      send(url, { method: 'POST', type: 'application/x-www-form-urlencoded', ...form }, limits, (response, reading) =>
        readJson(response, reading, errors),
      ),
    /** Sends a request for a tool that reports what it sees. */
    fetchAny: (url: string, request: Partial<Call>, limits: FetchLimits): Promise<AnyResponse> =>
      send(url, { method: 'GET', ...request }, limits, async (response, reading) => {
        const { status, headers, rawHeaders = [] } = response;
        return { status, headers, rawHeaders, body: await readBody(response, reading) };
      }),
    /** Ends calls in flight with `closed`, drops every connection, and refuses new calls. */
    close(): void {
      closed = true;
      for (const controller of inFlight) controller.abort(new ProviderError('closed'));
      close?.();
    },
  };
}

/** Sends one request of a tool over its own connection, without a proxy. Rejects with `ProviderError`. */
export async function fetchDirectly(
  url: URL,
  request: Partial<Call>,
  limits: FetchLimits,
  options: OutboundOptions & ClientIdentity & { readonly insecure?: boolean } = {},
): Promise<AnyResponse> {
  const { fetchAny, close } = createOutbound({ environment: {}, insecure: true, ...options });
  return fetchAny(url.href, request, limits).finally(close);
}

/** A response that is being read: its limit, and the bytes of its body so far; `undefined` before its head. */
interface Reading extends Omit<FetchLimits, 'timeoutSeconds'> {
  bytes?: number;
}

function timedOut({ bytes }: Reading): ProviderError {
  return new ProviderError('timeout', { detail: bytes === undefined ? undefined : `${bytes} bytes` });
}

async function readJson(response: FetchResponse, reading: Reading, errors?: Form['errors']): Promise<FetchedJson> {
  const { status, redirected, headers } = response;
  // A runtime that hides a redirect gives the response the status 0.
  if (redirected || status === 0) throw new ProviderError('redirect');
  if (status >= 300 && status < 400) {
    const location = headers.get('location');
    const leads = location === null ? '' : ` to ${showText(showUrl(location))}`;
    throw new ProviderError('redirect', { detail: `${status}${leads}` });
  }
  const isError = errors === 'read' && status >= 400 && status < 500 && status !== 429;
  if (status !== 200 && !isError) throw new ProviderError('status', { detail: String(status) });
  const bytes = await readBody(response, reading);
  const value = parseJsonObject(withoutMark(bytes));
  if (value !== undefined) return { status, value, maxAge: readMaxAge(headers.get('cache-control')) };
  if (isError) throw new ProviderError('status', { detail: String(status) });
  if (bytes.length === 0) throw new ProviderError('not_json', { detail: '0 bytes' });
  const [type] = /^[\w.+-]+\/[\w.+-]+/.exec(headers.get('content-type') ?? '') ?? [];
  throw new ProviderError('not_json', { detail: type?.endsWith('json') ? undefined : type });
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}

/** Reads a body; `undefined` if it has more bytes. Notes the bytes that it has read. */
export async function readBytes(body: FetchResponse['body'], reading: Reading): Promise<Buffer | undefined> {
  if (body === null) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of Symbol.asyncIterator in body ? body : iterate(body)) {
    size += chunk.length;
    reading.bytes = size;
    if (size > reading.maxBytes && reading.excess === undefined) return undefined;
    chunks.push(chunk);
    if (size > reading.maxBytes) break;
  }
  return Buffer.concat(chunks);
}

async function readBody({ body, coding }: FetchResponse, reading: Reading): Promise<Buffer> {
  const bytes = await readBytes(body, reading);
  if (bytes === undefined) throw new ProviderError('too_large');
  const isPlain = coding === undefined || coding === 'identity' || reading.excess === 'cut';
  return isPlain ? bytes : unpack(bytes, coding, reading.maxBytes);
}

async function unpack(bytes: Buffer, coding: string, maxBytes: number): Promise<Buffer> {
  if (!/^(?:x-)?gzip$/.test(coding)) {
    throw new ProviderError('bad_coding', { detail: /^[\w-]{1,16}$/.exec(coding)?.[0] });
  }
  const { gunzipSync } = await import('node:zlib');
  try {
    const options = { maxOutputLength: maxBytes, info: true };
    // The types do not know `info`.
    const { buffer, engine } = gunzipSync(bytes, options) as unknown as {
      readonly buffer: Buffer;
      readonly engine: { readonly bytesWritten: number };
    };
    // Bytes after the end are ignored by zlib.
    if (engine.bytesWritten === bytes.length) return buffer;
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw new ProviderError('too_large');
  }
  throw new ProviderError('bad_coding', { detail: 'gzip' });
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
    // The rest is not needed; without a rest, this does nothing.
    reader.cancel().catch(() => undefined);
  }
}

/** The first `max-age` counts (RFC 9111 §4.2.1); `s-maxage` is for shared caches. */
function readMaxAge(cacheControl: string | null): number | undefined {
  const digits = cacheControl?.match(/(?:^|[\s,])max-age="?(\d{1,10})/i)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
