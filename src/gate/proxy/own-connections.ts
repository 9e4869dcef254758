import type { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { createPlaces } from '../../core/http/peer-places.ts';
import { hasValue } from './headers.ts';
import type { Forwarding, RequestHead } from './request-head.ts';

/** Schemes that authenticate a connection and not a request (RFC 4559; `Kerberos` and `Nego2` on Windows). */
const connectionSchemes = /(?:^|[\s,])(?:ntlm|negotiate|kerberos|nego2)(?=[\s,]|$)/i;

/** Connections to an upstream that belong only to one client's connection, and end with it. */
export interface OwnConnections {
  /** Returns the client of the request's own connection, or `undefined` if the request may share one. */
  find(forwarding: Forwarding, head: RequestHead): Agent | undefined;
  /** Reports whether a response offers such a scheme. Its client then gets its own connection. */
  noteOffer(socket: Socket, rawHeaders: readonly string[]): boolean;
  close(): void;
}

/** Creates the own connections of one upstream. `share`: the part of one peer; its oldest one ends if the part is full. */
export function createOwnConnections(createAgent: () => Agent, most: number, share: number): OwnConnections {
  const places = createPlaces(most, share);
  const agents = new Map<Socket, Agent>();
  const offered = new WeakSet<Socket>();
  return {
    find({ incoming: { socket }, client, credentials }, { headers }) {
      const known = agents.get(socket);
      if (known !== undefined) return known;
      const isSent = credentials === 'forward' && hasValue(headers, 'authorization', connectionSchemes);
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
    noteOffer(socket, rawHeaders) {
      const isOffered = hasValue(rawHeaders, 'www-authenticate', connectionSchemes);
      if (isOffered) offered.add(socket);
      return isOffered;
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}
