import { X509Certificate } from 'node:crypto';
import type { AgentOptions, Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { SecureContext } from 'node:tls';
import { onBun, refuseOnWorkerd } from '../platform.ts';
import { bareHost, createProxyChoice, type Environment } from './proxy-choice.ts';
import { createTunnels, type Tunnels } from './tunnel.ts';

/** The part of a web-standard `fetch` that is used; the global one of any runtime fits. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** Options of a `Fetch` call. */
export interface FetchInit {
  /** HTTP method. */
  readonly method: string;
  /** Header names and values. */
  readonly headers: Record<string, string>;
  /** Body of a POST. */
  readonly body?: string;
  /** Redirects are not followed. */
  readonly redirect: 'manual';
  /** Aborts the request when its time is over. */
  readonly signal: AbortSignal;
}

/** The parts of a response that are read. */
export interface FetchResponse {
  /** HTTP status. */
  readonly status: number;
  /** True if a redirect was followed; the response is then an error. */
  readonly redirected: boolean;
  /** Header fields. */
  readonly headers: { get(name: string): string | null };
  /** Bytes of the body; `null` without one. */
  readonly body: AsyncIterable<Uint8Array> | ByteStream | null;
  /** Content coding that the body still has; a `fetch` has decoded it. */
  readonly coding?: string | undefined;
  /** Header fields as they arrived: names and values in turn; only of the built-in client. */
  readonly rawHeaders?: readonly string[];
}

/** A stream that is read chunk by chunk: not every runtime, and not every type of one, has it iterable. */
export interface ByteStream {
  /** Locks the stream, as of the Streams Standard. */
  getReader(): {
    read(): Promise<{ readonly value?: Uint8Array | undefined }>;
    cancel(): Promise<unknown>;
  };
}

export interface HttpClient {
  readonly fetch: Fetch;
  close(): void;
}

/** Connection options of the built-in client. */
export interface HttpClientOptions {
  /** PEM certificates trusted in addition to Node's roots; with it, NODE_EXTRA_CA_CERTS is not read. */
  readonly ca?: string;
  /** Source of HTTPS_PROXY, HTTP_PROXY and NO_PROXY, lower case first. Default: `process.env`. */
  readonly environment?: Environment;
}

const connectMilliseconds = 3000;
/** Milliseconds that an idle connection stays open: less than most servers keep it. */
const idleMilliseconds = 4000;

/** A client certificate with its key, in PEM; only for tools. */
export type ClientIdentity = { readonly identity?: string };

/**
 * Creates a client that connects directly, or through the proxy of the environment. Loads nothing before the first request.
 * At most `connections` are open to one host: keys are fetched one after the other. Throws `TypeError` for a malformed proxy
 * address or certificate.
 */
export function createHttpClient(
  { ca, identity, environment = process.env }: HttpClientOptions & ClientIdentity,
  connections: number = 1,
): HttpClient {
  const chooseProxy = createProxyChoice(environment);
  if (ca !== undefined) assertCertificate(ca);
  const open = async (proxy: string): Promise<HttpClient> => {
    const trust = ca === undefined && identity === undefined ? undefined : await findTrust(ca, identity);
    if (proxy !== '' && onBun) return { fetch: (url, init) => fetchOnBun(url, init, trust), close: () => undefined };
    return openClient(proxy, connections, trust);
  };
  // Opened once: each of several simultaneous requests would otherwise read the roots.
  const opened = new Map<string, Promise<HttpClient>>();
  return {
    async fetch(url, init) {
      const proxy = chooseProxy(url)?.address ?? '';
      const client = opened.get(proxy) ?? open(proxy);
      opened.set(proxy, client);
      return (await client).fetch(url, init);
    },
    close() {
      for (const client of opened.values()) client.then(({ close }) => close()).catch(() => undefined);
    },
  };
}

/** Creates a client of the platform's own `fetch`, because workerd has no sockets. Throws `TypeError` for a `ca` there. */
export function createWorkerdClient({ ca }: HttpClientOptions): HttpClient {
  if (ca !== undefined) refuseOnWorkerd('ca', 'where only the platform says which certificates are trusted');
  // Not as a method of anything: the platform would refuse it.
  return { fetch: (url, init) => fetch(url, init), close: () => undefined };
}

/** Bun ignores agents. Its own `fetch` uses the proxies of the environment. */
function fetchOnBun(url: string, init: FetchInit, trust: Trust | undefined): Promise<FetchResponse> {
  return fetch(url, { ...init, ...(trust && { tls: { ca: trust.roots } }) } as RequestInit);
}

/** One scheme: how to send a request, over which connections, and the event that ends connecting. */
interface Scheme {
  readonly request: typeof httpRequest;
  readonly agent: HttpAgent;
  /** For a request that a reused connection has lost. */
  readonly unused: HttpAgent;
  readonly connected: 'connect' | 'secureConnect';
}

/** Opens a client; `proxy` is empty for direct connections. */
async function openClient(proxy: string, connections: number, trust: Trust | undefined): Promise<HttpClient> {
  const [http, https] = await Promise.all([import('node:http'), import('node:https')]);
  const secureContext = trust?.secureContext;
  const tunnels =
    proxy === '' ? undefined : await createTunnels(proxy, { secureContext, timeout: connectMilliseconds });
  const reusing = { keepAlive: true, maxSockets: connections, timeout: idleMilliseconds };
  const openScheme = (module: typeof http | typeof https, connected: Scheme['connected']): Scheme => {
    const openAgent = (options: AgentOptions): HttpAgent => {
      const agent = new module.Agent({
        ...options,
        ...(connected === 'secureConnect' && secureContext && { secureContext }),
      });
      return tunnels === undefined ? agent : leadThrough(tunnels, agent, connected);
    };
    return { request: module.request, agent: openAgent(reusing), unused: openAgent({}), connected };
  };
  const schemes = { plain: openScheme(http, 'connect'), secure: openScheme(https, 'secureConnect') };
  return {
    fetch: (url, init) => fetchOnce(url.startsWith('https:') ? schemes.secure : schemes.plain, url, init),
    close() {
      tunnels?.close();
      for (const { agent, unused } of Object.values(schemes)) {
        agent.destroy();
        unused.destroy();
      }
    },
  };
}

/** Gives an agent connections through a proxy. */
function leadThrough(tunnels: Tunnels, agent: HttpAgent, connected: Scheme['connected']): HttpAgent {
  const connectOver = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    // Never without a callback, and never with an error and a stream: the types are for both ways to return one.
    const settle = callback as (error: Error | null, stream?: ReturnType<typeof connectOver>) => void;
    const { host, port } = options as { readonly host: string; readonly port: number }; // the request names both
    tunnels
      .open(bareHost(host), port)
      .then(
        (socket) => settle(null, connected === 'connect' ? socket : connectOver({ ...options, ...{ socket } })),
        settle,
      );
    return undefined;
  };
  return agent;
}

/** Sends a request, and once more over a new connection if a reused one, closed by the other side, ended before the first byte. */
async function fetchOnce(scheme: Scheme, url: string, init: FetchInit): Promise<FetchResponse> {
  const reused = { isLost: false };
  try {
    return await sendOver(scheme, url, init, reused);
  } catch (error) {
    if (!reused.isLost || init.signal.aborted) throw error;
    return sendOver({ ...scheme, agent: scheme.unused }, url, init, reused);
  }
}

function sendOver(
  { request, agent, connected }: Scheme,
  url: string,
  { method, headers, body, signal }: FetchInit,
  reused: { isLost: boolean },
): Promise<FetchResponse> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { 'accept-encoding': 'gzip, identity', ...headers }, agent });
    sent.on('socket', (socket) => {
      reused.isLost = sent.reusedSocket;
      if (sent.reusedSocket)
        socket.once('data', () => {
          reused.isLost = false;
        });
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
      const headers = { get: (name: string): string | null => response.headers[name]?.toString() ?? null };
      const coding = headers.get('content-encoding')?.toLowerCase();
      const { statusCode, rawHeaders } = response;
      const status = statusCode as number; // a response always has a status
      resolve({ status, redirected: false, headers, rawHeaders, body: response, coding });
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

interface Trust {
  /** `undefined`: the roots of Node and of NODE_EXTRA_CA_CERTS. */
  readonly roots: readonly string[] | undefined;
  readonly secureContext: SecureContext;
}

let latest: { readonly ca: string; readonly trust: Promise<Trust> } | undefined;

/** Finds the context that all clients with the same authority share: parsing the roots takes tens of milliseconds. */
function findTrust(ca: string | undefined, identity: string | undefined): Promise<Trust> {
  if (ca === undefined || identity !== undefined) return createTrust(ca, identity);
  if (latest?.ca !== ca) latest = { ca, trust: createTrust(ca) };
  return latest.trust;
}

async function createTrust(ca: string | undefined, identity?: string): Promise<Trust> {
  const { createSecureContext, rootCertificates } = await import('node:tls');
  const roots = ca === undefined ? undefined : [...rootCertificates, ca];
  return { roots, secureContext: createSecureContext({ ca: roots, cert: identity, key: identity }) };
}

function assertCertificate(ca: string): void {
  try {
    new X509Certificate(ca);
  } catch (cause) {
    throw new TypeError('The extra certificate authority is not a certificate in PEM.', { cause });
  }
}
