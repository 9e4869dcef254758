import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeRsaKeys } from '../../support/rsa-keys.ts';
import { createTestCertificates, type TestValidity } from '../../support/tls.ts';

/** What is wrong with a provider that is good in all else. */
export interface Bend {
  issuer?: string;
  jwksUri?: string;
  /** Seconds by which its clock is ahead. */
  lead?: number;
  keys?: readonly object[];
  status?: number;
  /** Status of the discovery document only. */
  discoveryStatus?: number;
  /** More members of the metadata. */
  metadata?: object;
  /** Response of /introspect. */
  introspection?: { readonly document: object; readonly status: number };
  /** Never responds. */
  hangs?: boolean;
  /** The document that is a page of HTML. */
  html?: 'discovery' | 'keys';
}

/** A provider over TLS whose documents can be bent. */
export interface BentProvider {
  readonly issuer: string;
  readonly domain: string;
  readonly caFile: string;
  /** A published key. */
  readonly jwk: object;
  /** What is wrong from now on. */
  bend: Bend;
  close(): Promise<void>;
}

/** Starts it on a free loopback port; `validity` of its certificate. */
export async function startBentProvider(validity?: TestValidity): Promise<BentProvider> {
  const certificates = await createTestCertificates(validity);
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-bent-'));
  const caFile = join(folder, 'ca.pem');
  await writeFile(caFile, certificates.ca);
  const { publicKey } = takeRsaKeys();
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'key-1', use: 'sig', alg: 'RS256' };
  const server = createServer({ cert: certificates.cert, key: certificates.key }, (request, response) => {
    const {
      issuer = own,
      jwksUri = `${own}jwks`,
      lead = 0,
      keys = [jwk],
      status = 200,
      discoveryStatus,
      hangs = false,
      html,
      metadata,
      introspection,
    } = provider.bend;
    if (hangs) return;
    response.sendDate = false;
    response.setHeader('date', new Date(Date.now() + lead * 1000).toUTCString());
    if (request.url === '/introspect') {
      const { document = {}, status: own = 404 } = introspection ?? {};
      return void response.writeHead(own, { 'content-type': 'application/json' }).end(JSON.stringify(document));
    }
    const document = request.url === '/jwks' ? { keys } : { issuer, jwks_uri: jwksUri, ...metadata };
    const isDiscovery = request.url !== '/jwks';
    if (html === (isDiscovery ? 'discovery' : 'keys'))
      return void response.end('<!doctype html><title>Sign in</title>');
    response
      .writeHead((isDiscovery ? discoveryStatus : undefined) ?? status, { 'content-type': 'application/json' })
      .end(JSON.stringify(document));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const own = `https://localhost:${port}/`;
  const provider: BentProvider = {
    issuer: own,
    domain: `localhost:${port}`,
    caFile,
    jwk,
    bend: {},
    async close() {
      server.closeAllConnections();
      await once(server.close(), 'close');
      await rm(folder, { recursive: true });
    },
  };
  return provider;
}
