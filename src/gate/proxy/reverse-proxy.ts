import type { Agent } from 'node:http';
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { Refused } from '../../core/refused.ts';
import { discardRest } from '../../server/http/exchange.ts';
import { createPlaces } from '../../server/http/peer-places.ts';
import { endsConnection, hasHeader } from './headers.ts';
import { forwardByRequest } from './request-forwarding.ts';
import { createRequestHead, type Forwarding, type Framing, type RequestHead } from './request-head.ts';
import { ResponseWriter, type ResponseWriterOptions } from './response.ts';
import { forwardUpgrade } from './upgrade.ts';
import {
  describeFailure,
  type ForwardJob,
  mayRepeat,
  openUpstream,
  type PooledClient,
  type UpstreamOptions,
} from './upstream.ts';

export interface ReverseProxyOptions extends UpstreamOptions, Pick<ResponseWriterOptions, 'onHead'> {
  /** Seconds between two chunks of an event stream. */
  readonly tunnelTimeout: number;
  /** Maximum number of requests and tunnels in flight; more are refused with 503. Default: 4096. */
  readonly maxInFlight?: number;
  /** Share of them that one client may use, over 0 and at most 1. */
  readonly share: number;
}

export type ReverseProxy = Awaited<ReturnType<typeof createReverseProxy>>;

/** Creates a streaming reverse proxy to one upstream. Rejects with `TypeError` if the upstream is not an address. */
export async function createReverseProxy(options: ReverseProxyOptions) {
  const { maxInFlight = 4096, share, tunnelTimeout } = options;
  const maxOfClient = Math.max(1, Math.floor(maxInFlight * share));
  const upstream = await openUpstream(options);
  const ownConnections = createOwnConnections(upstream.createOwnAgent, maxInFlight, share);
  const close = (): void => {
    ownConnections.close();
    upstream.close();
  };
  const inFlight = new Set<ResponseWriter>();
  const inFlightOf = new Map<string, number>();
  let isRetired = false;
  const writerOptions: ResponseWriterOptions = {
    timeoutMilliseconds: upstream.timeoutMilliseconds,
    streamMilliseconds: tunnelTimeout * 1000,
    onHead(seconds) {
      upstream.noteResponse();
      options.onHead(seconds);
    },
    inFlight,
    leave({ client, onDone }) {
      const left = (inFlightOf.get(client) ?? 0) - 1;
      if (left > 0) inFlightOf.set(client, left);
      else inFlightOf.delete(client);
      onDone?.();
      if (isRetired && inFlight.size === 0) close();
    },
  };

  return {
    /** Forwards one examined request and its response. Never throws. */
    forward(forwarding: Forwarding, framing: Framing): void {
      const { client } = forwarding;
      const ofClient = inFlightOf.get(client) ?? 0;
      const isBusy = inFlight.size >= maxInFlight;
      if (isBusy || (ofClient >= maxOfClient && client !== '')) {
        const limit = isBusy ? 'requests in flight' : 'PEER_SHARE';
        forwarding.refuse(new Refused('upstream_overloaded', { context: { limit } }));
        discardRest(forwarding.incoming);
        forwarding.onDone?.();
        return;
      }
      const head = createRequestHead(forwarding, framing);
      inFlightOf.set(client, ofClient + 1);
      const writer = new ResponseWriter(forwarding, writerOptions);
      const ownAgent = ownConnections.find(forwarding, head);
      const job = { upstream, forwarding, head, writer, ownConnections, ownAgent };
      try {
        if (head.isWebSocket) forwardUpgrade(job);
        else if (head.body === 'none' && ownAgent === undefined) forwardByPool(job);
        else forwardByRequest(job);
      } catch (cause) {
        writer.fail(new Refused('unexpected', { cause }));
      }
    },
    inFlight: () => inFlight.size,
    /** Responds to the requests for which the upstream has no response yet, and ends event streams: the process is about to end. */
    endWaiting(): void {
      for (const writer of inFlight) writer.endWaiting();
    },
    /** Closes every connection once the requests in flight have finished. */
    retire(): void {
      isRetired = true;
      if (inFlight.size === 0) close();
    },
    ...{ close, probe: upstream.probe, isReachable: upstream.isReachable },
  };
}

/** Schemes that authenticate a connection and not a request (RFC 4559; `Kerberos` and `Nego2` on Windows). */
const connectionSchemes = /(?:^|[\s,])(?:ntlm|negotiate|kerberos|nego2)(?=[\s,]|$)/i;

/** Creates the connections that belong to one client's connection, and end with it. `share`: the part of one peer. */
function createOwnConnections(createAgent: () => Agent, most: number, share: number) {
  const places = createPlaces(most, share);
  const agents = new Map<Socket, Agent>();
  const offered = new WeakSet<Socket>();
  return {
    /** Returns the client of the request's own connection, or `undefined` if the request may share one. */
    find({ incoming: { socket }, client, credentials }: Forwarding, { headers }: RequestHead): Agent | undefined {
      const known = agents.get(socket);
      if (known !== undefined) return known;
      const isSent = credentials === 'forward' && hasHeader(headers, 'authorization', connectionSchemes);
      if (!isSent && !offered.has(socket)) return undefined;
      const agent = createAgent();
      // Nothing is sent for a client that has disconnected, and its end was already reported.
      if (socket.destroyed) return agent;
      const end = (): void => {
        socket.off('close', close);
        agents.delete(socket);
        agent.destroy();
      };
      const place = { peer: client, end };
      const close = (): void => {
        places.leave(place);
        end();
      };
      places.take(place);
      agents.set(socket, agent);
      socket.on('close', close);
      return agent;
    },
    /** Reports whether a response offers such a scheme. Its client then gets its own connection. */
    noteOffer(socket: Socket, rawHeaders: readonly string[]): boolean {
      const isOffered = hasHeader(rawHeaders, 'www-authenticate', connectionSchemes);
      if (isOffered) offered.add(socket);
      return isOffered;
    },
    close(): void {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}

/** Position of the status in `HTTP/1.1 200 OK`. */
const firstDigit = 9;

/** Forwards a request without a body. */
function forwardByPool(job: ForwardJob, pooled: PooledClient = job.upstream.pool.take()): void {
  const { method, target: path, headers } = job.head;
  pooled.client.dispatch({ method, path, headers, body: null }, new UpstreamResponseHandler(job, pooled));
}

/** Raw handler of undici for one response: the other form decodes header values as UTF-8. A class for each request. */
class UpstreamResponseHandler implements Dispatcher.DispatchHandler {
  readonly #job: ForwardJob;
  readonly #writer: ResponseWriter;
  /** Absent once another request may use it. */
  #pooled: PooledClient | undefined;
  #isReusable = true;
  /** Bytes that the connection has received for earlier requests. */
  #earlierBytes = 0;
  /** Position in the head of an informational response, digits of its status, and bytes of its end that were seen. */
  #at = 0;
  #status = 0;
  #ending = 0;
  #isFinal = false;
  #isDraining = false;
  #resume: (() => void) | undefined;

  constructor(job: ForwardJob, pooled: PooledClient) {
    this.#job = job;
    this.#writer = job.writer;
    this.#pooled = pooled;
    pooled.handler = this;
  }

  onConnect(abort: () => void): void {
    this.#earlierBytes = this.#pooled?.socket?.bytesRead ?? 0;
    if (this.#writer.isOver()) abort();
    else {
      this.#writer.onAbort(() => {
        this.drain();
        this.#leave('reset');
      });
    }
  }

  /** Makes 102 of each 100 before the response: undici refuses 100, and drops nothing else. */
  receive(chunk: Buffer): void {
    for (let i = 0; i < chunk.length && !this.#isFinal; i++) {
      const byte = chunk[i] ?? 0;
      if (this.#at >= firstDigit && this.#at < firstDigit + 3) {
        this.#status = this.#status * 10 + byte - 0x30;
        if (this.#at === firstDigit) this.#isFinal = this.#status !== 1;
        else if (this.#status === 100) chunk[i] = 0x32;
      }
      this.#at++;
      if (byte === (this.#ending % 2 === 0 ? 0x0d : 0x0a)) this.#ending++;
      else this.#ending = byte === 0x0d ? 1 : 0;
      if (this.#ending === 4) this.#at = this.#status = this.#ending = 0;
    }
  }

  onHeaders(status: number, rawHeaders: readonly (Buffer | string)[], resume: () => void): boolean {
    if (status < 200) {
      this.#writer.inform(status, decode(rawHeaders));
      return true;
    }
    const headers = decode(rawHeaders);
    const { ownConnections, forwarding } = this.#job;
    if (ownConnections.noteOffer(forwarding.incoming.socket, headers)) this.#isReusable = false;
    this.#resume = resume;
    this.#writer.begin(status, headers);
    if (endsConnection(this.#job.head.method, status)) {
      // Here, because undici awaits the body that a Content-Length announces.
      this.#writer.end([]);
      this.#leave('reset');
    }
    return true;
  }

  onData(chunk: Buffer): boolean {
    return this.#writer.write(chunk, this.#resume) || this.#isDraining;
  }

  onComplete(trailers: readonly (Buffer | string)[] | null): void {
    this.#writer.end(trailers === null ? [] : decode(trailers));
    this.#leave(this.#isReusable ? 'release' : 'reset');
  }

  onError(error: Error): void {
    const socket = this.#pooled?.socket;
    const isUnanswered = this.#earlierBytes > 0 && socket?.bytesRead === this.#earlierBytes;
    this.#leave('discard');
    if (isUnanswered && mayRepeat(this.#job, error)) {
      forwardByPool({ ...this.#job, isRepeated: true }, this.#job.upstream.pool.create());
    } else this.#writer.fail(describeFailure(error));
  }

  drain(): void {
    this.#isDraining = true;
    this.#resume?.();
  }

  #leave(way: 'release' | 'reset' | 'discard'): void {
    const pooled = this.#pooled;
    if (pooled === undefined) return;
    this.#pooled = undefined;
    pooled.handler = undefined;
    this.#job.upstream.pool[way](pooled);
  }
}

/** Decodes header values as latin1, as Node does. */
function decode(raw: readonly (Buffer | string)[]): readonly string[] {
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}
