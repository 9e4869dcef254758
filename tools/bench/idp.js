// The identity provider of a bench run, in a process of its own: discovery and keys over TLS on loopback.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const { CERTIFICATE = '', KEY = '', JWKS = '' } = process.env;
const jwks = readFileSync(JWKS);
const headers = { 'content-type': 'application/json', 'cache-control': 'max-age=3600' };

/** @param {import('node:https').Server} listening */
const portOf = (listening) => /** @type {import('node:net').AddressInfo} */ (listening.address()).port;

const server = createServer({ cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) }, (request, response) => {
  const origin = `https://127.0.0.1:${portOf(server)}`;
  const documents = {
    '/.well-known/jwks.json': jwks,
    '/.well-known/openid-configuration': JSON.stringify({
      issuer: `${origin}/`,
      jwks_uri: `${origin}/.well-known/jwks.json`,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
    }),
  };
  const url = request.url ?? '';
  const found = Object.hasOwn(documents, url);
  response.writeHead(found ? 200 : 404, headers).end(found ? documents[url] : '{}');
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${portOf(server)}\n`));
