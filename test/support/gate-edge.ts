import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Edge, edges, type ProxyServer, startEdge } from './proxy-server.ts';
import type { TestCertificates } from './tls.ts';

/** The proxies that deploy/gate has a file for, and that can be started here. */
export const gateEdgeNames = ['nginx', 'caddy', 'haproxy'] as const;

export type GateEdgeName = (typeof gateEdgeNames)[number];

const folder = new URL('../../deploy/gate/', import.meta.url);
const files: Readonly<Record<GateEdgeName, readonly string[]>> = {
  nginx: ['nginx.conf'],
  caddy: ['Caddyfile'],
  haproxy: ['haproxy.cfg', 'haproxy.lua'],
};

/** Starts a proxy that asks a gate about each request for an upstream; both are `host:port`. */
export function startGateEdge(
  name: GateEdgeName,
  addresses: { readonly gate: string; readonly upstream: string },
  certificates: TestCertificates,
): Promise<ProxyServer> {
  const edge: Edge = { ...edges[name], templates: files[name].map((file) => new URL(file, folder)) };
  return startEdge(edge, { certificates, values: { GATE: addresses.gate, UPSTREAM: addresses.upstream } });
}

/** One request that reached the upstream. */
export interface Received {
  readonly method: string;
  /** Request target as it came. */
  readonly target: string;
  /** Names as they came and values in turn. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

/** A server that says what it received, and takes it down. */
export interface RecordingUpstream {
  /** `127.0.0.1:port`. */
  readonly address: string;
  readonly received: Received[];
  /** How it answers; default 200 with what it received, in JSON. */
  answer: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  close(): Promise<void>;
}

/** Starts an upstream on a free loopback port. */
export async function startRecordingUpstream(): Promise<RecordingUpstream> {
  const received: Received[] = [];
  const upstream = {
    answer: (_incoming: IncomingMessage, outgoing: ServerResponse): void => {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(JSON.stringify(received.at(-1)));
    },
  };
  const server = createServer((incoming, outgoing) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    incoming.on('end', () => {
      const { method = '', url = '', rawHeaders } = incoming;
      received.push({ method, target: url, rawHeaders: [...rawHeaders], body });
      upstream.answer(incoming, outgoing);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return Object.assign(upstream, {
    address: `127.0.0.1:${port}`,
    received,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}
