import { createServer } from 'node:http';
import type { JsonObject } from '../../src/core/jose/json.ts';
import { createTestIssuer, type TestIssuer, type TestIssuerOptions } from '../../src/testing/index.ts';
import { listen, stop } from '../../tools/shared/network.js';

/** An issuer on loopback, without TLS. */
export type PlainIssuer = Awaited<ReturnType<typeof startPlainIssuer>>;

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
export async function startPlainIssuer(options: PlainIssuerOptions = {}) {
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
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const issuer = createTestIssuer({ issuer: nameIssuer(origin), alg, ...(audience !== undefined && { audience }) });
  const describe = () => ({ issuer: issuer.issuer, jwks_uri: `${origin}${jwksPath}`, ...document(origin) });
  // Its getters read the issuer.
  return Object.assign(Object.create(issuer) as TestIssuer, {
    origin,
    /** Requested paths, oldest first. */
    paths: paths as readonly string[],
    close: () => stop(server),
  });
}
