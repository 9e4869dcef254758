// An identity provider on loopback, over TLS, with faults on request.
import { createServer } from 'node:https';
import { gzipSync } from 'node:zlib';
import { findFreePort, listen, stop } from './network.js';

const discoveryPath = '/.well-known/openid-configuration';
const jwksPath = '/.well-known/jwks.json';
const dripMilliseconds = 100;
/** 10 KB that unpack to 10 MB. */
const bomb = gzipSync(Buffer.alloc(10_000_000, ' '));

/** Starts a provider that publishes the public halves of `keys`; `identity` is its certificate. */
export async function startProvider({ identity, keys, maxAge, host = 'localhost' }) {
  const counts = { discovery: 0, jwks: 0, misled: 0 };
  const drips = new Set();
  let mode = 'sound';
  let published = keys;
  let askedAt;

  const server = createServer({ cert: identity.certificate, key: identity.key }, (request, response) => {
    askedAt ??= performance.now();
    if (request.url === discoveryPath) counts.discovery++;
    if (request.url === jwksPath) counts.jwks++;
    if (mode !== 'sound') counts.misled++;
    answers[mode](request, response);
  });
  const port = await findFreePort();
  await listen(server, port);
  const domain = `${host}:${port}`;
  const issuer = `https://${domain}/`;

  const discovery = {
    issuer,
    jwks_uri: `https://${domain}${jwksPath}`,
    authorization_endpoint: `${issuer}authorize`,
    token_endpoint: `${issuer}token`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  };

  const answers = {
    sound: ({ url }, response) => {
      if (url === discoveryPath) send(response, discovery);
      else if (url === jwksPath) send(response, { keys: published.map(({ jwk }) => jwk) });
      else response.writeHead(404).end();
    },
    hang: () => {},
    close: (request) => request.socket.destroy(),
    stall: (_request, response) => response.writeHead(200, { 'content-length': 1000 }).write('{'),
    redirect: (_request, response) => response.writeHead(302, { location: 'https://localhost:1/' }).end(),
    compress: (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    lie: (_request, response) => send(response, { ...discovery, issuer: 'https://other.example/', keys: [] }),
    drip: (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const drip = setInterval(() => response.write(' '), dripMilliseconds);
      drips.add(drip);
      response.on('close', () => clearInterval(drip));
    },
  };

  function send(response, document) {
    response.setHeader('content-type', 'application/json');
    if (maxAge !== undefined) response.setHeader('cache-control', `public, max-age=${maxAge}`);
    response.end(JSON.stringify(document));
  }

  function down() {
    for (const drip of drips) clearInterval(drip);
    return stop(server);
  }

  return {
    domain,
    issuer,
    /** Number of requests for key sets; a provider that is down cannot count. */
    get fetches() {
      return Math.max(counts.discovery, counts.jwks);
    },
    /** Requests that met a fault. */
    get misled() {
      return counts.misled;
    },
    /** Seconds since its first request; 0 before it. */
    age: () => (askedAt === undefined ? 0 : (performance.now() - askedAt) / 1000),
    get listening() {
      return server.listening;
    },
    get keys() {
      return published;
    },
    publish(next) {
      published = next;
    },
    /** `sound`, or a name of `answers`. */
    behave(next) {
      mode = next;
    },
    down,
    up: () => listen(server, port),
    stop: down,
  };
}
