import type { KeyObject } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type CompactJWSHeaderParameters, CompactSign } from 'jose';
import { afterAll } from 'vitest';
import { makeFolder } from '../../tools/shared/folder.js';
import { findFreePort, listen, stop } from '../../tools/shared/network.js';
import { takeRsaKeys } from './rsa-keys.ts';
import { createTestCertificates, takeTrustedCertificates, trustedCaFile } from './tls.ts';

/** The two documents that a resource server fetches. */
export type ProviderRoute = 'discovery' | 'jwks';

/**
 * Faults of a route: no response, single bytes without end, a cut connection, 500 or 404, no JSON, more than 256 KiB of
 * valid JSON, a redirect to another path; for discovery also another issuer, or an http jwks_uri.
 */
export type ProviderFault =
  | 'hang'
  | 'drip'
  | 'reset'
  | 'status_500'
  | 'not_found'
  | 'garbage'
  | 'huge'
  | 'redirect'
  | 'wrong_issuer'
  | 'http_jwks_uri';

/** Signature of a token, if not with the current key and the usual JOSE header. */
export interface SignOptions {
  /** The signing key, also a withdrawn one. Default: the newest. */
  readonly kid?: string;
  /** Members that replace `{ alg, kid, typ: 'at+jwt' }`; `undefined` omits a member. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** Last change to the JSON of the claims. */
  readonly edit?: (json: string) => string;
}

/** A running identity provider on loopback, over TLS. */
export type TestProvider = Awaited<ReturnType<typeof startTestProvider>>;

/** Options of the provider. */
export interface TestProviderOptions {
  /** Default `https://api.example.test/`. */
  readonly audience?: string;
  /** Loopback address to listen on; the certificate is for localhost, 127.0.0.1 and ::1. Default 127.0.0.1. */
  readonly host?: string;
  /** Path of the issuer. Default `/`. */
  readonly path?: string;
  /** False: its authority is unknown to the processes of the run. Default: true. */
  readonly isTrusted?: boolean;
}

interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly jwk: object;
}

const paths: Readonly<Record<ProviderRoute, string>> = {
  discovery: '/.well-known/openid-configuration',
  jwks: '/.well-known/jwks.json',
};

/** Starts a provider for the tests of a file, and stops it after them. */
export async function useTestProvider(options?: TestProviderOptions): Promise<TestProvider> {
  const provider = await startTestProvider(options);
  afterAll(() => provider.close());
  return provider;
}

/** Starts a provider on a free loopback port, with one RS256 key of 2048 bits; stop it with `close()`. */
export async function startTestProvider(options: TestProviderOptions = {}) {
  const { audience = 'https://api.example.test/', host = '127.0.0.1', path: issuerPath = '/' } = options;
  const trustedFile = options.isTrusted === false ? undefined : trustedCaFile();
  const base = issuerPath.replace(/\/$/, '');
  const routes: ReadonlyMap<string, ProviderRoute> = new Map([
    [base + paths.discovery, 'discovery'],
    [base + paths.jwks, 'jwks'],
  ]);
  const certificates = await (trustedFile === undefined ? createTestCertificates() : takeTrustedCertificates());
  const folder = makeFolder('provider');
  const caFile = trustedFile ?? join(folder, 'ca.pem');
  if (trustedFile === undefined) writeFileSync(caFile, certificates.ca);

  const signingKeys = new Map<string, SigningKey>();
  const published: unknown[] = [];
  const withdrawn = new Set<string>();
  const counts = new Map<string, number>();
  const faults = new Map<ProviderRoute, ProviderFault>();
  const drips = new Set<NodeJS.Timeout>();
  const others = new Map<string, (response: ServerResponse) => void>();
  let newest = createSigningKey(signingKeys);
  let maxAge: number | undefined;
  signingKeys.set(newest.kid, newest);

  const server = createServer({ cert: certificates.cert, key: certificates.key }, answer);
  const port = await findFreePort();
  await listen(server, port, host);
  const domain = `localhost:${port}`;
  const issuer = `https://${domain}${issuerPath}`;
  const jwksUri = `https://${domain}${base}${paths.jwks}`;

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', issuer).pathname;
    counts.set(path, (counts.get(path) ?? 0) + 1);
    const other = others.get(path);
    const route = routes.get(path);
    const fault = route === undefined ? 'not_found' : faults.get(route);
    const faultAnswer = fault === undefined ? undefined : faultAnswers[fault];
    if (other !== undefined) other(response);
    else if (faultAnswer !== undefined) faultAnswer(response);
    else if (route === 'discovery') sendJson(response, 200, discoveryDocument(fault));
    else sendKeySet(response);
  }

  function sendKeySet(response: ServerResponse): void {
    if (maxAge !== undefined) response.setHeader('cache-control', `public, max-age=${maxAge}`);
    sendJson(response, 200, keySetDocument());
  }

  const faultAnswers: Readonly<Partial<Record<ProviderFault, (response: ServerResponse) => void>>> = {
    hang: () => undefined,
    drip: (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const drip = setInterval(() => response.write(' '), 20);
      drips.add(drip);
      response.on('close', () => clearInterval(drip));
    },
    reset: (response) => response.destroy(),
    status_500: (response) => sendJson(response, 500, { error: 'server_error' }),
    not_found: (response) => sendJson(response, 404, { error: 'not_found' }),
    garbage: (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('<html>sign in</html>'),
    huge: (response) => sendJson(response, 200, { ...keySetDocument(), padding: 'x'.repeat(300 * 1024) }),
    redirect: (response) => response.writeHead(302, { location: `https://${domain}/elsewhere` }).end(),
  };

  function discoveryDocument(fault: ProviderFault | undefined): object {
    return {
      issuer: fault === 'wrong_issuer' ? 'https://other.example.test/' : issuer,
      jwks_uri: fault === 'http_jwks_uri' ? jwksUri.replace('https:', 'http:') : jwksUri,
      authorization_endpoint: `https://${domain}${base}/authorize`,
      token_endpoint: `https://${domain}${base}/oauth/token`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
    };
  }

  function keySetDocument(): object {
    const current = [...signingKeys.values()].filter(({ kid }) => !withdrawn.has(kid));
    return { keys: [...current.map(({ jwk }) => jwk), ...published] };
  }

  function findSigningKey(kid: string): SigningKey {
    const key = signingKeys.get(kid);
    if (key === undefined) throw new TypeError('The provider has no such key.');
    return key;
  }

  /** Ends every fault for calls to come; what hangs already stays so until its connection closes. */
  function mend(): void {
    faults.clear();
    for (const drip of drips) clearInterval(drip);
    drips.clear();
  }

  return {
    issuer,
    /** The domain setting. */
    domain,
    port,
    /** The `aud` of its tokens. */
    audience,
    jwksUri,
    /** PEM of the authority behind its certificate. */
    ca: certificates.ca,
    /** The authority in a file, for NODE_EXTRA_CA_CERTS. */
    caFile,
    /** The newest key. */
    get kid() {
      return newest.kid;
    },
    /** Keys that are published now, oldest first. */
    get kids(): readonly string[] {
      return [...signingKeys.keys()].filter((kid) => !withdrawn.has(kid));
    },
    /**
     * Creates an access token: `iss`, `aud`, `sub`, `iat`, `exp` (in an hour) and `scope` (`read:messages`), with the
     * given claims; `undefined` omits a claim.
     */
    sign(
      claims: Readonly<Record<string, unknown>> = {},
      { kid, header = {}, edit = (json) => json }: SignOptions = {},
    ): Promise<string> {
      const key = kid === undefined ? newest : findSigningKey(kid);
      const now = Math.floor(Date.now() / 1000);
      const defaults = { iss: issuer, aud: audience, sub: 'user|1', iat: now, exp: now + 3600, scope: 'read:messages' };
      const payload = edit(JSON.stringify({ ...defaults, ...claims }));
      const jose = { alg: 'RS256', kid: key.kid, typ: 'at+jwt', ...header };
      return new CompactSign(new TextEncoder().encode(payload))
        .setProtectedHeader(jose as CompactJWSHeaderParameters) // a test may want members of the wrong type
        .sign(key.privateKey);
    },
    /** Publishes a new RS256 key next to the others, signs with it afterwards, and returns its `kid`. */
    async rotate() {
      newest = createSigningKey(signingKeys);
      signingKeys.set(newest.kid, newest);
      return newest.kid;
    },
    /** Publishes the key no longer. */
    withdraw: (kid: string) => void withdrawn.add(findSigningKey(kid).kid),
    /** Publishes a raw entry next to the keys: a broken JWK, a JWK for another use or of another type. */
    publish: (jwk: unknown) => void published.push(jwk),
    /** Serves another path; `undefined`: 404 again. */
    serve: (path: `/${string}`, respond: ((response: ServerResponse) => void) | undefined) =>
      void (respond === undefined ? others.delete(path) : others.set(path, respond)),
    /** Requests so far for a route, or for any path. */
    requests: (route: ProviderRoute | `/${string}`) =>
      counts.get(route.startsWith('/') ? route : base + paths[route as ProviderRoute]) ?? 0, // no slash: a route
    /** Connections that are open now. */
    connections: () => promisify(server.getConnections.bind(server))(),
    /** Lets one route, or both, misbehave until `mend()`. */
    inject(fault: ProviderFault, route?: ProviderRoute) {
      for (const each of route === undefined ? routes.values() : [route]) faults.set(each, fault);
    },
    mend,
    /** Sends `Cache-Control: max-age` with the key set; seconds, `undefined` for no header. */
    setMaxAge(seconds: number | undefined) {
      maxAge = seconds;
    },
    /** Closes the listener and every connection: calls are refused. */
    down: () => stop(server),
    /** Listens again, on the same port. */
    async up() {
      if (!server.listening) await listen(server, port, host);
    },
    /** Stops for good and removes its files. */
    async close() {
      mend();
      await stop(server);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

let serial = 0;

/** Makes a key that the provider does not have yet. */
function createSigningKey(others: ReadonlyMap<string, SigningKey>): SigningKey {
  let keys = takeRsaKeys('provider');
  while ([...others.values()].some(({ privateKey }) => privateKey.equals(keys.privateKey)))
    keys = takeRsaKeys('provider');
  const { publicKey, privateKey } = keys;
  const kid = `key-${++serial}`;
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' } };
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
