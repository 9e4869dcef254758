import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../src/core/jose/json.ts';
import { createTestIssuer, type TestIssuer, type TestIssuerOptions } from '../../src/testing/index.ts';

/** An issuer on loopback, without TLS. */
export interface PlainIssuer extends TestIssuer {
  /** `http://127.0.0.1:<port>`. */
  readonly origin: string;
  /** Requested paths, oldest first. */
  readonly paths: readonly string[];
  close(): Promise<void>;
}

/** Documents of the issuer by path, created from its origin. */
export interface PlainIssuerOptions extends Pick<TestIssuerOptions, 'audience' | 'alg'> {
  /** Default: the origin with a slash. */
  readonly issuer?: (origin: string) => string;
  /** Path of the discovery document. Default `/.well-known/openid-configuration`; `undefined` for none. */
  readonly discoveryPath?: string | undefined;
  /** Default `/jwks`. */
  readonly jwksPath?: string;
  /** More members of the discovery document, or others in their place. */
  readonly document?: (origin: string) => JsonObject;
}

/** Starts an issuer that publishes discovery document and keys; stop it with `close()`. */
export async function startPlainIssuer(options: PlainIssuerOptions = {}): Promise<PlainIssuer> {
  const { issuer: nameIssuer = (origin) => `${origin}/`, jwksPath = '/jwks', document = () => ({}), ...kit } = options;
  const { audience, alg = 'ES256' } = kit;
  const discoveryPath = 'discoveryPath' in options ? options.discoveryPath : '/.well-known/openid-configuration';
  const paths: string[] = [];
  const server = createServer(({ url = '/' }, response) => {
    paths.push(url);
    const body = url === discoveryPath ? describe() : url === jwksPath ? issuer.jwks : undefined;
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { error: 'not_found' }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const origin = `http://127.0.0.1:${port}`;
  const issuer = createTestIssuer({ issuer: nameIssuer(origin), alg, ...(audience !== undefined && { audience }) });
  const describe = () => ({ issuer: issuer.issuer, jwks_uri: `${origin}${jwksPath}`, ...document(origin) });
  return Object.create(issuer, {
    origin: { value: origin },
    paths: { value: paths },
    close: {
      value: async () => {
        server.closeAllConnections();
        await once(server.close(), 'close');
      },
    },
  });
}
