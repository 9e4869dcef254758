import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { makeFolder } from '../../../tools/shared/folder.js';
import { listen, stop } from '../../../tools/shared/network.js';
import { takeRsaKeys } from '../../support/rsa-keys.ts';
import { createTestCertificates, type TestValidity } from '../../support/tls.ts';

/** What is wrong with a provider that is good in all else. */
export interface Bend {
  issuer?: string;
  jwksUri?: string;
  /** Seconds by which its clock is ahead. */
  lead?: number;
  keys?: readonly object[];
  /** More members of the metadata. */
  metadata?: object;
  /** Response of /introspect. */
  introspection?: { readonly document: object; readonly status: number };
  /** Status of the metadata. */
  status?: number;
  /** Never responds. */
  hangs?: boolean;
}

export type BentProvider = Awaited<ReturnType<typeof startBentProvider>>;

/** Starts a provider over TLS whose documents can be bent, on a free loopback port; `validity` and more `hosts` of its certificate. */
export async function startBentProvider(validity?: TestValidity, hosts?: readonly string[]) {
  const certificates = await createTestCertificates(validity, hosts);
  const caFile = join(makeFolder('bent'), 'ca.pem');
  writeFileSync(caFile, certificates.ca);
  const { publicKey } = takeRsaKeys();
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'key-1', use: 'sig', alg: 'RS256' };
  const server = createServer({ cert: certificates.cert, key: certificates.key }, (request, response) => {
    const {
      issuer = own,
      jwksUri = `${own}jwks`,
      lead = 0,
      keys = [jwk],
      hangs,
      status = 200,
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
    response
      .writeHead(request.url === '/jwks' ? 200 : status, { 'content-type': 'application/json' })
      .end(JSON.stringify(document));
  });
  const port = await listen(server);
  const own = `https://localhost:${port}/`;
  const bend: Bend = {}; // what is wrong from now on
  const provider = { issuer: own, domain: `localhost:${port}`, caFile, jwk, bend, close: () => stop(server) };
  return provider;
}
