import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../jose/json.ts';
import type { JwkSet } from '../jose/jwk.ts';
import { makeCertificate } from './certificate.ts';

/** An issuer's documents, served over TLS. */
export interface IssuerServer {
  /** `https://localhost:<port>/`. */
  readonly issuer: string;
  /** PEM. */
  readonly ca: string;
  close(): Promise<void>;
}

const keySetPath = '.well-known/jwks.json';

/** Serves discovery document and key set, each made anew for each request, on a free port of 127.0.0.1. */
export async function startIssuerServer(readJwks: () => JwkSet): Promise<IssuerServer> {
  const { certificate, key } = await makeCertificate();
  const documents = new Map<string | undefined, () => JsonObject>();
  const server = createServer({ cert: certificate, key }, ({ url }, response) => {
    const document = documents.get(url);
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document?.() ?? { error: 'not_found' }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const issuer = `https://localhost:${port}/`;
  // What OpenID Connect Discovery §3 requires of every issuer, but for endpoints: there are none.
  const describe = (): JsonObject => ({
    issuer,
    jwks_uri: `${issuer}${keySetPath}`,
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
    async close() {
      closing ??= once(server.close(), 'close');
      server.closeAllConnections();
      await closing;
    },
  };
}
