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

export interface FetchLimits {
  /** Time limit in seconds for everything: connecting, the proxy, the response to its last byte. */
  readonly timeoutSeconds: number;
  /** Bytes of the body, after decompression. */
  readonly maxBytes: number;
}

export interface FetchedJson {
  readonly value: JsonObject;
  /** `max-age` of the response (RFC 9111 §5.2.2.1), in seconds. */
  readonly maxAge: number | undefined;
}

/**
 * GETs a JSON object within the limits, following no redirect; rejects with `ProviderError`. An address that is not https,
 * and not http where that is allowed: `TypeError`.
 */
export type FetchJson = (url: string, limits: FetchLimits) => Promise<FetchedJson>;

export interface Form {
  /** `name=value&…` (RFC 6749 appendix B). */
  readonly body: string;
  readonly authorization?: string | undefined;
}

/** POSTs a form as `FetchJson` GETs, and reads a JSON object from the response. */
export type PostForm = (url: string, form: Form, limits: FetchLimits) => Promise<FetchedJson>;

export interface JsonRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** Value of the Authorization header. Default: none. */
  readonly authorization?: string | undefined;
  /** Sent as JSON. Default: no body. */
  readonly value?: JsonObject;
}

export interface JsonResponse {
  readonly status: number;
  /** Value of the body; `undefined` if it is not JSON with unique members. */
  readonly value: unknown;
}

export interface Outbound {
  readonly fetchJson: FetchJson;
  readonly postForm: PostForm;
  /** GETs text of a media type as `fetchJson` GETs JSON. */
  readonly fetchText: (url: string, accept: string, limits: FetchLimits) => Promise<string>;
  /** Sends a request as `fetchJson` does. Resolves with any status except a redirect. */
  readonly sendJson: (url: string, request: JsonRequest, limits: FetchLimits) => Promise<JsonResponse>;
  /** Ends calls in flight with `closed`, drops every connection, and refuses new calls. */
  close(): void;
}

const createClient = pickByPlatform({ workerd: createWorkerdClient, others: createHttpClient });

/** Options for reaching the identity provider. */
export interface OutboundOptions extends HttpClientOptions {
  /** Replaces the built-in client: without its proxy and `ca`, within the same limits. */
  readonly fetch?: Fetch;
}

export const outboundMembers = {
  ca: true,
  environment: true,
  fetch: true,
} as const satisfies OptionMembers<OutboundOptions>;

/** Allowed schemes: https only, or plain http too, for keys that are configured as insecure. */
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
    fetchJson: (url, limits) => callWithin(limits, url, { method: 'GET', headers: accept }, readJson),
    postForm: (url, { body, authorization }, limits) => {
      const headers = {
        ...accept,
        ...(authorization !== undefined && { authorization }),
        'content-type': 'application/x-www-form-urlencoded',
      };
      return callWithin(limits, url, { method: 'POST', headers, body }, readJson);
    },
    fetchText: (url, type, limits) => callWithin(limits, url, { method: 'GET', headers: { accept: type } }, readText),
    sendJson: (url, { method, authorization, value }, limits) => {
      const headers = {
        ...accept,
        ...(authorization !== undefined && { authorization }),
        ...(value !== undefined && { 'content-type': 'application/json' }),
      };
      const body = value === undefined ? {} : { body: JSON.stringify(value) };
      return callWithin(limits, url, { method, headers, ...body }, readAnyJson);
    },
    close() {
      closed = true;
      for (const controller of inFlight) controller.abort(new ProviderError('closed'));
      client.close();
    },
  };

  async function callWithin<T>(
    { timeoutSeconds, maxBytes }: FetchLimits,
    url: string,
    call: Call,
    read: (response: FetchResponse, maxBytes: number) => Promise<T>,
  ): Promise<T> {
    if (!schemes.test(url)) throw new TypeError('Only https URLs are fetched.');
    if (closed) throw new ProviderError('closed');
    const controller = new AbortController();
    const { signal } = controller;
    const timer = setTimeout(() => controller.abort(new ProviderError('timeout')), timeoutSeconds * 1000);
    inFlight.add(controller);
    const fetchAndRead = async (): Promise<T> => {
      const response = await client.fetch(url, { ...call, redirect: 'manual', signal });
      // A runtime that hides a redirect gives the response the status 0.
      const { status, redirected } = response;
      if (redirected || status === 0 || (status >= 300 && status < 400)) throw new ProviderError('redirect');
      return read(response, maxBytes);
    };
    try {
      // The race binds also a `fetch` that does not heed its signal.
      return await Promise.race([aborted(signal), fetchAndRead()]);
    } catch (error) {
      controller.abort(); // lets go of a body that was not read to its end
      throw toProviderError(error);
    } finally {
      clearTimeout(timer);
      inFlight.delete(controller);
    }
  }
}

async function readText({ status, body }: FetchResponse, maxBytes: number): Promise<string> {
  if (status !== 200) throw new ProviderError('status', { detail: String(status) });
  return Buffer.from(await readBody(body, maxBytes)).toString('latin1');
}

async function readJson(response: FetchResponse, maxBytes: number): Promise<FetchedJson> {
  const { status, body, headers } = response;
  if (status !== 200) throw new ProviderError('status', { detail: String(status) });
  const value = parseJsonObject(await readBody(body, maxBytes));
  if (value === undefined) throw new ProviderError('not_json');
  return { value, maxAge: readMaxAge(headers.get('cache-control')) };
}

async function readAnyJson({ status, body }: FetchResponse, maxBytes: number): Promise<JsonResponse> {
  // Some bodies are arrays: within an object they are parsed as strictly.
  const bytes = Buffer.concat([Buffer.from('{"value":'), await readBody(body, maxBytes), Buffer.from('}')]);
  return { status, value: parseJsonObject(bytes)?.['value'] };
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
    // The rest is not needed; without a rest, this does nothing.
    reader.cancel().catch(() => undefined);
  }
}

/** The first `max-age` counts (RFC 9111 §4.2.1); `s-maxage` is for shared caches. */
function readMaxAge(cacheControl: string | null): number | undefined {
  const digits = cacheControl?.match(/(?:^|[\s,])max-age="?(\d{1,10})/i)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
