import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { listen, stop } from '../../../tools/shared/network.js';
import type { TestCertificates } from '../../support/tls.ts';

/** How a reverse proxy harms what it passes on. */
export interface ProxyBend {
  /** Headers that are lost. */
  readonly strips?: readonly string[];
  /** Headers that it sets. */
  readonly sets?: Readonly<Record<string, string>>;
  /** Methods that the proxy refuses itself. */
  readonly answers?: readonly string[];
  /** Status of these refusals. Default: 405. */
  readonly answerStatus?: number;
  /** Path prefix that the proxy strips. Other paths get 404. */
  readonly prefix?: string;
  /** Paths that lead elsewhere: to this origin. */
  readonly elsewhere?: Readonly<Record<string, string>>;
  /** Ends TLS with this certificate. */
  readonly tls?: TestCertificates;
}

/** Starts a reverse proxy in front of an origin, on a free loopback port. Host is passed on. */
export async function startBentProxy(target: string, bend: ProxyBend) {
  const { strips = [], sets = {}, answers = [], answerStatus = 405, prefix = '', elsewhere = {}, tls } = bend;
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { method = 'GET', url = '/' } = incoming;
    if (answers.includes(method)) return void outgoing.writeHead(answerStatus).end();
    if (!url.startsWith(prefix)) return void outgoing.writeHead(404).end();
    const headers = { ...incoming.headers, ...sets };
    for (const name of strips) delete headers[name];
    const to = new URL(url.slice(prefix.length), elsewhere[url] ?? target);
    const sent = request(to, { method, headers, agent: false }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    sent.once('error', () => outgoing.destroy());
    sent.end();
  };
  const server = tls === undefined ? createServer(pass) : createTlsServer({ cert: tls.cert, key: tls.key }, pass);
  const port = await listen(server);
  const url = tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`;
  return { url, close: () => stop(server) };
}
