import { type JsonObject, parseJsonObject } from '../jose/json.ts';
import type { OptionMembers } from '../option-members.ts';
import { pickByPlatform } from '../platform.ts';
import {
  type ByteStream,
  createHttpClient,
  type Fetch,
  type FetchInit,
  type FetchResponse,
  type HttpClient,
  type HttpClientOptions,
} from './http-client.ts';
import { ProviderError, toProviderError } from './provider-error.ts';
import { createWorkerdClient } from './workerd-client.ts';

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

/**
 * GETs a JSON object within the limits, following no redirect; rejects with `ProviderError`. An address that is not https,
 * and not http where that is allowed: `TypeError`.
 */
export type FetchJson = (url: string, limits: FetchLimits) => Promise<FetchedJson>;

/** A form that is posted with credentials. */
export interface Form {
  /** `name=value&…` (RFC 6749 appendix B). */
  readonly body: string;
  /** The Authorization header. */
  readonly authorization: string;
}

/** POSTs a form as `FetchJson` GETs, and takes a JSON object for an answer. */
export type PostForm = (url: string, form: Form, limits: FetchLimits) => Promise<FetchedJson>;

/** The way out to the identity provider. */
export interface Outbound {
  readonly fetchJson: FetchJson;
  readonly postForm: PostForm;
  /** Ends calls in flight with `closed`, drops every connection, and refuses new calls. */
  close(): void;
}

const createClient = pickByPlatform({ workerd: createWorkerdClient, others: createHttpClient });

/** How the identity provider is reached. */
export interface OutboundOptions extends HttpClientOptions {
  /** Used in place of the built-in client: without its proxy and `ca`, within the same limits. */
  readonly fetch?: Fetch;
}

/** The members of {@link OutboundOptions}. */
export const outboundMembers = {
  ca: true,
  environment: true,
  fetch: true,
} as const satisfies OptionMembers<OutboundOptions>;

/** What a way out may call: https only, or plain http too, for keys that somebody has asked for so by name. */
export interface OutboundSchemes {
  readonly insecure?: boolean;
}

/**
 * Makes the way out; nothing is connected before the first call. `connections` are opened to one host at most, default 1.
 * A malformed option: `TypeError`.
 */
export function createOutbound(options: OutboundOptions & OutboundSchemes = {}, connections?: number): Outbound {
  const client = options.fetch === undefined ? createClient(options, connections) : borrow(options.fetch);
  const inFlight = new Set<AbortController>();
  let closed = false;
  const accept = { accept: 'application/json' };
  const schemes = options.insecure === true ? /^https?:\/\// : /^https:\/\//;
  return {
    fetchJson: (url, limits) => callWithin(limits, url, { method: 'GET', headers: accept }),
    postForm: (url, { body, authorization }, limits) => {
      const headers = { ...accept, authorization, 'content-type': 'application/x-www-form-urlencoded' };
      return callWithin(limits, url, { method: 'POST', headers, body });
    },
    close() {
      closed = true;
      for (const controller of inFlight) controller.abort(new ProviderError('closed'));
      client.close();
    },
  };

  async function callWithin({ timeoutSeconds, maxBytes }: FetchLimits, url: string, call: Call): Promise<FetchedJson> {
    if (!schemes.test(url)) throw new TypeError('Only https URLs are fetched.');
    if (closed) throw new ProviderError('closed');
    const controller = new AbortController();
    const { signal } = controller;
    const timer = setTimeout(() => controller.abort(new ProviderError('timeout')), timeoutSeconds * 1000);
    inFlight.add(controller);
    try {
      // The race binds also a `fetch` that does not heed its signal.
      return await Promise.race([aborted(signal), readJson(url, { ...call, redirect: 'manual', signal }, maxBytes)]);
    } catch (error) {
      controller.abort(); // lets go of a body that was not read to its end
      throw toProviderError(error);
    } finally {
      clearTimeout(timer);
      inFlight.delete(controller);
    }
  }

  async function readJson(url: string, init: FetchInit, maxBytes: number): Promise<FetchedJson> {
    const response = await client.fetch(url, init);
    const { status, redirected, body, headers } = response;
    // A runtime that hides an answer with a redirect gives it the status 0.
    if (redirected || status === 0 || (status >= 300 && status < 400)) throw new ProviderError('redirect');
    if (status !== 200) throw new ProviderError('status', { detail: String(status) });
    const value = parseJsonObject(await readBody(body, maxBytes));
    if (value === undefined) throw new ProviderError('not_json');
    return { value, maxAge: readMaxAge(headers.get('cache-control')) };
  }
}

type Call = Pick<FetchInit, 'method' | 'headers' | 'body'>;

/** A `fetch` of the caller's: its connections are not ours to close. */
function borrow(fetch: Fetch): HttpClient {
  return { fetch, close: () => undefined };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}

async function readBody(body: FetchResponse['body'], maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of readChunks(body)) {
    size += chunk.length;
    if (size > maxBytes) throw new ProviderError('too_large');
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
