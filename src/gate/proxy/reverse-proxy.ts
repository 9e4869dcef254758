import type { Agent, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Refused } from '../../core/refused.ts';
import { discardRest } from '../../server/http/exchange.ts';
import { createPlaces } from '../../server/http/peer-places.ts';
import { hasHeader } from './headers.ts';
import { forwardByPool } from './pool-forwarding.ts';
import { forwardByRequest } from './request-forwarding.ts';
import { createRequestHead, type Forwarding, type Framing, type RequestHead, readFraming } from './request-head.ts';
import { ResponseWriter, type ResponseWriterOptions } from './response.ts';
import { forwardUpgrade } from './upgrade.ts';
import { openUpstream, type UpstreamOptions } from './upstream.ts';

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

/** Creates the reader of framing. A refusal closes the connection, because its next bytes are not trustworthy. */
export function createExamine() {
  const doubtful = new WeakMap<Socket, Refused>();
  /** Must run in the iteration in which the request arrived. */
  return (incoming: IncomingMessage, outgoing: ServerResponse): Framing | Refused => {
    const { socket } = incoming;
    const framing = doubtful.get(socket) ?? readFraming(incoming);
    if (framing instanceof Refused) {
      doubtful.set(socket, framing);
      outgoing.shouldKeepAlive = false;
    }
    return framing;
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
