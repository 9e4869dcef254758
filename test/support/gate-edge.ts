import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { afterAll } from 'vitest';
import { formatUpgrade, listen, stop } from '../../tools/shared/network.js';
import { type Edge, edges, type ProxyServer, startEdge } from './proxy-server.ts';
import type { TestCertificates } from './tls.ts';

/** The proxies that deploy/gate has a file for, and that can be started here. */
export const gateEdgeNames = ['nginx', 'caddy', 'haproxy'] as const;

export type GateEdgeName = (typeof gateEdgeNames)[number];

const folder = new URL('../../deploy/gate/', import.meta.url);
/** Files of each proxy. */
export const gateEdgeFiles: Readonly<Record<GateEdgeName, readonly string[]>> = {
  nginx: ['nginx.conf'],
  caddy: ['Caddyfile'],
  haproxy: ['haproxy.cfg', 'haproxy.lua'],
};

/** Starts a proxy that queries a gate for each request to an upstream; both are `host:port`. */
export function startGateEdge(
  name: GateEdgeName,
  addresses: { readonly gate: string; readonly upstream: string },
  certificates: TestCertificates,
): Promise<ProxyServer> {
  const edge: Edge = { ...edges[name], templates: gateEdgeFiles[name].map((file) => new URL(file, folder)) };
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
export type RecordingUpstream = Awaited<ReturnType<typeof startRecordingUpstream>>;

/** Starts an upstream for the tests of a file, and closes it after them. */
export async function useUpstream(): Promise<RecordingUpstream> {
  const upstream = await startRecordingUpstream();
  afterAll(() => upstream.close());
  return upstream;
}

/** The headers of the last request by their names in lower case, lines of one name joined; none before the first. */
export function lastHeaders({ received }: RecordingUpstream): Readonly<Record<string, string | undefined>> {
  const { rawHeaders = [] } = received.at(-1) ?? {};
  const headers: Record<string, string> = {};
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    headers[name] = [...(Object.hasOwn(headers, name) ? [headers[name]] : []), rawHeaders[at + 1]].join(', ');
  }
  return headers;
}

/** The lines of each header of the last request, by the name that CGI would give it. */
export function lastLines({ received }: RecordingUpstream): ReadonlyMap<string, readonly string[]> {
  const { rawHeaders = [] } = received.at(-1) ?? {};
  const found = new Map<string, string[]>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase().replace(/[^a-z0-9]/g, '-');
    found.set(name, [...(found.get(name) ?? []), rawHeaders[at + 1] ?? '']);
  }
  return found;
}

/** Starts an upstream on a loopback port. Default: a free one. */
export async function startRecordingUpstream(chosenPort = 0) {
  const received: Received[] = [];
  const upstream = {
    received,
    /** The response; default 200 with the received request in JSON. */
    answer: (_incoming: IncomingMessage, outgoing: ServerResponse): void => {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(JSON.stringify(received.at(-1)));
    },
    /** Takes over a request before its body is read, and then returns `true`. Default: none. */
    intercept: undefined as ((incoming: IncomingMessage, outgoing: ServerResponse) => boolean) | undefined,
    /** Responds to an upgrade instead, and then returns `true`. Default: each is accepted. */
    interceptUpgrade: undefined as ((socket: Duplex) => boolean) | undefined,
  };
  const server = createServer({ maxHeaderSize: 32_768 }, (incoming, outgoing) => {
    if (upstream.intercept?.(incoming, outgoing) === true) return;
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
  // Accepts every WebSocket, and returns its bytes.
  server.on('upgrade', ({ method = '', url = '', rawHeaders, headers }: IncomingMessage, socket: Duplex) => {
    received.push({ method, target: url, rawHeaders: [...rawHeaders], body: '' });
    if (upstream.interceptUpgrade?.(socket) === true) return;
    socket.write(formatUpgrade(headers['sec-websocket-key']));
    socket.on('error', () => {}).pipe(socket);
  });
  return Object.assign(upstream, {
    address: `127.0.0.1:${await listen(server, chosenPort)}`,
    close: () => stop(server),
  });
}
