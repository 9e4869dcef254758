import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { JsonObject } from '../core/jose/json.ts';
import type { JwkSet } from '../core/jose/jwk.ts';
import { makeCertificate } from './certificate.ts';

/** Introspection endpoint and client: options of `createIntrospection`. */
export interface IntrospectionAccount {
  /** `https://localhost:<port>/introspect`. */
  readonly endpoint: string;
  /** Issuer of the tokens. */
  readonly issuer: string;
  /** Client id of the endpoint. */
  readonly clientId: string;
  /** New for each listening issuer. */
  readonly clientSecret: string;
}

const keySetPath = '.well-known/jwks.json';
const introspectionPath = 'introspect';

/** Serves the documents of an issuer at `https://localhost:<port>/`. */
export async function startIssuerServer(readJwks: () => JwkSet, introspect: (token: string | null) => JsonObject) {
  const { certificate, key } = await makeCertificate();
  const documents = new Map<string | undefined, () => JsonObject>();
  const account = { clientId: 'test-api', clientSecret: randomBytes(32).toString('base64url') };
  const authorization = `Basic ${Buffer.from(`${account.clientId}:${account.clientSecret}`).toString('base64')}`;
  const respondIntrospection = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') return respond(response, 405, { error: 'invalid_request' });
    // RFC 7662 §2.1: only for authorized clients.
    if (request.headers.authorization !== authorization) return respond(response, 401, { error: 'invalid_client' });
    respond(response, 200, introspect(new URLSearchParams(await text(request)).get('token')));
  };
  const server = createServer({ cert: certificate, key }, (request, response) => {
    if (request.url === `/${introspectionPath}`) {
      // A client that disconnected before the end of its body needs no response.
      void respondIntrospection(request, response).catch(() => response.destroy());
      return;
    }
    const document = documents.get(request.url);
    respond(response, document === undefined ? 404 : 200, document?.() ?? { error: 'not_found' });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const issuer = `https://localhost:${port}/`;
  const endpoint = `${issuer}${introspectionPath}`;
  // The members that OpenID Connect Discovery §3 requires, except endpoints that issue tokens: there are none.
  const describe = (): JsonObject => ({
    issuer,
    jwks_uri: `${issuer}${keySetPath}`,
    introspection_endpoint: endpoint,
    introspection_endpoint_auth_methods_supported: ['client_secret_basic'],
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  });
  documents
    .set('/.well-known/openid-configuration', describe)
    .set('/.well-known/oauth-authorization-server', describe)
    .set(`/${keySetPath}`, readJwks);
  let closing: Promise<unknown> | undefined;
  return {
    issuer,
    ca: certificate,
    introspectionAccount: { endpoint, issuer, ...account },
    async close(): Promise<void> {
      closing ??= once(server.close(), 'close');
      server.closeAllConnections();
      await closing;
    },
  };
}

function respond(response: ServerResponse, status: number, body: JsonObject): void {
  // RFC 6749 §5.2: the response states the client's authentication scheme.
  if (status === 401) response.setHeader('www-authenticate', 'Basic realm="test issuer"');
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}
