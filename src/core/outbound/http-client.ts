import { X509Certificate } from 'node:crypto';
import type { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { SecureContext } from 'node:tls';
import { refuseOnWorkerd } from '../platform.ts';
import { readProxyAddress } from './https-address.ts';

/** The part of a web-standard `fetch` that is used; the global one of any runtime fits. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** Options of a `Fetch` call. */
export interface FetchInit {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly headers: Record<string, string>;
  /** Body of a POST or PATCH. */
  readonly body?: string;
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

/** The parts of a response that are read. */
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

/** Connection options of the built-in client. */
export interface HttpClientOptions {
  /** PEM certificates trusted in addition to Node's roots; with it, NODE_EXTRA_CA_CERTS is not read. */
  readonly ca?: string;
  /** Source of HTTPS_PROXY, HTTP_PROXY and NO_PROXY, lower case first. Default: `process.env`. */
  readonly environment?: Environment;
}

type Environment = Readonly<Record<string, string | undefined>>;

const connectMilliseconds = 3000;
/** Milliseconds that an idle connection stays open: less than most servers keep it. */
const idleMilliseconds = 4000;

/**
 * Creates a client that connects directly, or through the proxy of the environment; HTTP_PROXY serves if HTTPS_PROXY is
 * absent. Loads nothing before the first request. `connections` are opened to one host at most: keys are fetched one after
 * the other. A malformed proxy address or certificate: `TypeError`.
 */
export function createHttpClient(
  { ca, environment = process.env }: HttpClientOptions,
  connections: number = 1,
): HttpClient {
  const proxies = {
    httpProxy: readProxy(environment, 'HTTP_PROXY'),
    httpsProxy: readProxy(environment, 'HTTPS_PROXY'),
    noProxy: readVariable(environment, 'NO_PROXY'),
  };
  if (ca !== undefined) assertCertificate(ca);
  const isDirect = proxies.httpProxy === '' && proxies.httpsProxy === '';
  const open = async (): Promise<HttpClient> => {
    const trust = ca === undefined ? undefined : await findTrust(ca);
    return isDirect ? openDirect(connections, trust) : openProxied(proxies, connections, trust);
  };
  let client: Promise<HttpClient> | undefined;
  return {
    async fetch(url, init) {
      // Opened once: each of several simultaneous requests would otherwise read the roots.
      client ??= open();
      return (await client).fetch(url, init);
    },
    close: () => void client?.then(({ close }) => close()).catch(() => undefined),
  };
}

/**
 * Creates a client of the platform's own `fetch`: workerd has no sockets that undici could use. A `ca` there: `TypeError`.
 */
export function createWorkerdClient({ ca }: HttpClientOptions): HttpClient {
  if (ca !== undefined) refuseOnWorkerd('ca', 'where only the platform says which certificates are trusted');
  // Not as a method of anything: the platform would refuse it.
  return { fetch: (url, init) => fetch(url, init), close: () => undefined };
}

/** One scheme: how to send a request, over which connections, and the event that ends connecting. */
interface Scheme {
  readonly request: typeof httpRequest;
  readonly agent: HttpAgent;
  readonly connected: 'connect' | 'secureConnect';
}

async function openDirect(connections: number, trust: Trust | undefined): Promise<HttpClient> {
  const [http, https] = await Promise.all([import('node:http'), import('node:https')]);
  const options = { keepAlive: true, maxSockets: connections, timeout: idleMilliseconds };
  const plain: Scheme = { request: http.request, agent: new http.Agent(options), connected: 'connect' };
  const secure: Scheme = {
    request: https.request,
    agent: new https.Agent({ ...options, ...(trust && { secureContext: trust.secureContext }) }),
    connected: 'secureConnect',
  };
  return {
    fetch: (url, init) => fetchDirectly(url.startsWith('https:') ? secure : plain, url, init),
    close() {
      plain.agent.destroy();
      secure.agent.destroy();
    },
  };
}

function fetchDirectly({ request, agent, connected }: Scheme, url: string, init: FetchInit): Promise<FetchResponse> {
  const { method, headers, body, signal } = init;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent });
    sent.on('socket', (socket) => {
      if (!socket.connecting) return;
      const late = Object.assign(new Error('The connection was not established in time.'), { code: 'ETIMEDOUT' });
      const deadline = setTimeout(() => sent.destroy(late), connectMilliseconds);
      const stop = (): void => clearTimeout(deadline);
      socket.once(connected, stop);
      sent.once('close', stop);
    });
    sent.on('error', reject);
    // The only event after a switch of protocols.
    sent.on('close', () => reject(new Error('The connection closed without a response.')));
    sent.on('response', (response) => {
      // Aborted once its iteration has ended, it would end the process from Node 26 on.
      response.on('error', () => undefined);
      const get = (name: string): string | null => response.headers[name]?.toString() ?? null;
      // A response always has a status.
      resolve({ status: response.statusCode as number, redirected: false, headers: { get }, body: response });
    });
    // The `signal` of the request would fail a connection that is idle again, and this ends the process: nothing listens.
    const abort = (): void => {
      reject(signal.reason);
      sent.destroy();
    };
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    sent.end(body);
  });
}

async function openProxied(
  proxies: { readonly httpProxy: string; readonly httpsProxy: string; readonly noProxy: string },
  connections: number,
  trust: Trust | undefined,
): Promise<HttpClient> {
  const { EnvHttpProxyAgent, fetch } = await import('#undici');
  const connect = { timeout: connectMilliseconds, ...(trust && { secureContext: trust.secureContext }) };
  const dispatcher = new EnvHttpProxyAgent({
    ...proxies,
    ...{ connections, connect, requestTls: connect, proxyTls: connect },
  });
  // The undici of Bun ignores agents, and reads certificates here.
  const route = { dispatcher, ...(trust && { tls: { ca: trust.roots } }) };
  return {
    fetch: (url, init) => fetch(url, { ...init, ...route }),
    // The agents of Bun cannot be closed.
    close: () => void dispatcher.destroy?.(),
  };
}

/** Trusted certificates: the roots of Node and one more. */
interface Trust {
  readonly roots: readonly string[];
  readonly secureContext: SecureContext;
}

let latest: { readonly ca: string; readonly trust: Promise<Trust> } | undefined;

/** Finds the context that all clients with the same authority share: parsing the roots takes tens of milliseconds. */
function findTrust(ca: string): Promise<Trust> {
  if (latest?.ca !== ca) latest = { ca, trust: createTrust(ca) };
  return latest.trust;
}

async function createTrust(ca: string): Promise<Trust> {
  const { createSecureContext, rootCertificates } = await import('node:tls');
  const roots = [...rootCertificates, ca];
  return { roots, secureContext: createSecureContext({ ca: roots }) };
}

function assertCertificate(ca: string): void {
  try {
    new X509Certificate(ca);
  } catch (cause) {
    throw new TypeError('The extra certificate authority is not a certificate in PEM.', { cause });
  }
}

/** Returns an empty string for an absent variable: with `undefined` the agent would read `process.env`. */
function readVariable(environment: Environment, name: string): string {
  return environment[name.toLowerCase()] ?? environment[name] ?? '';
}

function readProxy(environment: Environment, name: string): string {
  const value = readVariable(environment, name);
  if (value === '') return '';
  const address = readProxyAddress(value);
  // The address may hold a password: it is neither shown nor kept as the cause.
  if (address === undefined) throw new TypeError(`${name} is not an http:// or https:// address.`);
  return address;
}
