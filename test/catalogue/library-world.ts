import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { createTestIssuer, type TestIssuer } from '../../src/testing/index.ts';
import { createTestCertificates, type TestCertificates } from '../support/tls.ts';
import { type DocumentServer, startDocumentServer } from './document-server.ts';
import { type IntrospectionEndpoint, startIntrospectionEndpoint } from './introspection-endpoint.ts';

/** A client certificate with what tokens and headers say of it. */
export interface ClientIdentity extends TestCertificates {
  /** DER. */
  readonly der: Buffer;
  /** `x5t#S256`. */
  readonly thumbprint: string;
  /** `Client-Cert` (RFC 9440 §2.2). */
  readonly header: string;
}

/** Shared parts of all cases, because keys and certificates are slow to create. */
export interface LibraryWorld {
  readonly issuer: TestIssuer;
  /** Another issuer with its own keys and the same audience. */
  readonly other: TestIssuer;
  readonly endpoint: IntrospectionEndpoint;
  readonly documents: DocumentServer;
  /** Signs in the name of that provider. */
  readonly published: TestIssuer;
  /** The certificate of the owner of bound tokens, also used by its listener. */
  readonly ours: ClientIdentity;
  readonly thief: ClientIdentity;
  /** A marker in every request and response, which the API must not return. */
  readonly marker: string;
  close(): Promise<void>;
}

/** Makes issuers, a provider, an introspection endpoint and client certificates. */
export async function openLibraryWorld(): Promise<LibraryWorld> {
  const [endpoint, documents] = await Promise.all([startIntrospectionEndpoint(), startDocumentServer()]);
  const [ours, thief] = await Promise.all([makeIdentity(), makeIdentity()]);
  return {
    issuer: createTestIssuer(),
    other: createTestIssuer({ issuer: 'https://other.test/' }),
    endpoint,
    documents,
    published: createTestIssuer({ issuer: documents.issuer }),
    ours,
    thief,
    marker: `x${randomBytes(8).toString('hex')}`,
    close: async () => void (await Promise.all([endpoint.close(), documents.close()])),
  };
}

async function makeIdentity(): Promise<ClientIdentity> {
  const certificates = await createTestCertificates();
  const der = new X509Certificate(certificates.cert).raw;
  return { ...certificates, der, thumbprint: hashBytes(der), header: `:${der.toString('base64')}:` };
}

/** SHA-256, base64url. */
export function hashBytes(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('base64url');
}
