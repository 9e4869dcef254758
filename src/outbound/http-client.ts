import { X509Certificate } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { readProxyAddress } from './proxy-address.ts';

/** The part of a web-standard `fetch` that is used; the global one of any runtime fits. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** What a `Fetch` is called with. */
export interface FetchInit {
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  /** Of a POST. */
  readonly body?: string;
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

/** What is read of a response. */
export interface FetchResponse {
  readonly status: number;
  readonly redirected: boolean;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | ByteStream | null;
}

/** A stream that is read chunk by chunk: not every runtime, and not every type of one, has it iterable. */
export interface ByteStream {
  getReader(): {
    read(): Promise<{ readonly value?: Uint8Array | undefined }>;
    cancel(): Promise<unknown>;
  };
}

/** A `Fetch` with connections of its own. */
export interface HttpClient {
  readonly fetch: Fetch;
  /** Drops every connection. */
  close(): void;
}

/** How the built-in client connects. */
export interface HttpClientOptions {
  /** PEM certificates trusted besides the roots of Node; NODE_EXTRA_CA_CERTS is not consulted where this is given. */
  readonly ca?: string;
  /** Where HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read, lower case first. Default `process.env`. */
  readonly environment?: Environment;
}

type Environment = Readonly<Record<string, string | undefined>>;

const connectMilliseconds = 3000;

/** Connections to one host at most: keys are fetched one after the other. */
const fewConnections = 1;

/**
 * Makes a client that goes through the proxy of the environment; HTTP_PROXY serves where HTTPS_PROXY is absent.
 * Nothing is loaded before the first call. A malformed proxy address or certificate: `TypeError`.
 */
export function createHttpClient(
  { ca, environment = process.env }: HttpClientOptions,
  connections: number = fewConnections,
): HttpClient {
  const proxies = {
    httpProxy: readProxy(environment, 'HTTP_PROXY'),
    httpsProxy: readProxy(environment, 'HTTPS_PROXY'),
    noProxy: readVariable(environment, 'NO_PROXY'),
  };
  if (ca !== undefined) assertCertificate(ca);
  let agent: Promise<FetchRoute> | undefined;
  return {
    async fetch(url, init) {
      // Half of the start-up time of the library, were it loaded with it.
      const { fetch } = await import('undici');
      // Begun once: calls that come together would each read the roots.
      agent ??= createAgent();
      return fetch(url, { ...init, ...(await agent) });
    },
    // The undici of Bun has agents that need no end.
    close: () => void agent?.then(({ dispatcher }) => dispatcher.destroy?.()).catch(() => undefined),
  };

  async function createAgent(): Promise<FetchRoute> {
    const trust = ca === undefined ? undefined : await findTrust(ca);
    const connect = { timeout: connectMilliseconds, ...trust?.connect };
    const { Agent, EnvHttpProxyAgent } = await import('undici');
    const dispatcher =
      proxies.httpProxy === '' && proxies.httpsProxy === ''
        ? new Agent({ connections, connect })
        : new EnvHttpProxyAgent({
            ...proxies,
            ...{ connections, connect, requestTls: connect, proxyTls: connect },
          });
    return { dispatcher, ...(trust !== undefined && { tls: trust.tls }) };
  }
}

/** How a call goes out: through an agent; the undici of Bun knows none, and is told of certificates beside it. */
interface FetchRoute {
  readonly dispatcher: Dispatcher;
  readonly tls?: { readonly ca: readonly string[] };
}

let latest: { readonly ca: string; readonly trust: ReturnType<typeof createTrust> } | undefined;

/** One context for all clients that trust the same: reading the roots again for each would cost tens of milliseconds. */
function findTrust(ca: string): ReturnType<typeof createTrust> {
  if (latest?.ca !== ca) latest = { ca, trust: createTrust(ca) };
  return latest.trust;
}

async function createTrust(ca: string) {
  const { createSecureContext, rootCertificates } = await import('node:tls');
  const roots = [...rootCertificates, ca];
  return { connect: { secureContext: createSecureContext({ ca: roots }) }, tls: { ca: roots } };
}

function assertCertificate(ca: string): void {
  try {
    new X509Certificate(ca);
  } catch (cause) {
    throw new TypeError('The extra certificate authority is not a certificate in PEM.', { cause });
  }
}

/** Empty where there is none: `undefined` would let the agent look into `process.env` by itself. */
function readVariable(environment: Environment, name: string): string {
  return environment[name.toLowerCase()] ?? environment[name] ?? '';
}

function readProxy(environment: Environment, name: string): string {
  const value = readVariable(environment, name);
  if (value === '') return '';
  const address = readProxyAddress(value);
  // The address may hold a password: it is neither told nor kept as the cause.
  if (address === undefined) throw new TypeError(`${name} is not an http:// or https:// address.`);
  return address;
}
