import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import { connect } from 'node:net';
import { createTestIssuer } from '../../src/testing/index.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { createTestCertificates } from './tls.ts';

/** Issuers with the names that documentation has, for processes that get everywhere through a proxy. */
export type NamedIssuers = Awaited<ReturnType<typeof startNamedIssuers>>;

/** Starts issuers at `https://<host>/`, each with discovery document and keys. No name is looked up. */
export async function startNamedIssuers(hosts: readonly string[], audience: string) {
  const issuers = new Map(hosts.map((host) => [host, createTestIssuer({ issuer: `https://${host}/`, audience })]));
  const { ca, cert, key } = await createTestCertificates(undefined, hosts);
  const provider = createServer({ cert, key }, ({ url, headers: { host = '' } }, response) => {
    const issuer = issuers.get(host);
    const body = url === '/jwks' ? issuer?.jwks : { issuer: issuer?.issuer, jwks_uri: `https://${host}/jwks` };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const port = await listen(provider);
  const proxy = createPlainServer((_request, response) => response.writeHead(502).end());
  proxy.on('connect', ({ url = '' }, socket) => {
    if (!issuers.has(url.replace(/:443$/, ''))) {
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
      return;
    }
    const through = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      through.pipe(socket).pipe(through);
    });
    // Either end closes the other one; the provider closes them all.
    through.on('error', () => undefined).on('close', () => socket.destroy());
    socket.on('error', () => undefined).on('close', () => through.destroy());
  });
  return {
    /** For HTTPS_PROXY and HTTP_PROXY: it leads to these issuers, and nowhere else. */
    proxy: `http://127.0.0.1:${await listen(proxy)}`,
    /** PEM: for NODE_EXTRA_CA_CERTS. */
    ca,
    /** The issuer of `https://<host>/`. Throws `TypeError` for a host that was not named. */
    of(host: string) {
      const issuer = issuers.get(host);
      if (issuer === undefined) throw new TypeError(`no issuer has the name ${host}`);
      return issuer;
    },
    async close() {
      for (const server of [provider, proxy]) await stop(server);
    },
  };
}
