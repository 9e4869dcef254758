import { hash } from 'node:crypto';
import type { Connection } from '../core/http/request.ts';
import type { JsonObject } from '../core/jose/json.ts';
import { loadX509, makeClientCertificate, makeLocalhostCertificate, unbounded } from './certificate/self-signed.ts';

// A type, because `fetch` does not accept an interface as headers.
/** Headers of a request behind a proxy that terminates TLS (RFC 9440). */
export type CertificateHeaders = {
  /** The token, after `Bearer`. */
  readonly authorization: string;
  /** The client certificate. */
  readonly 'client-cert': string;
};

/** A client with its own certificate, to which its tokens are bound (RFC 8705 §3). */
export interface CertificateClient {
  /** PEM: for `https.request({ cert, key })` of a client over TLS. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
  /** `x5t#S256` of its tokens. */
  readonly thumbprint: string;
  /** Connection of the client instead of a TLS socket: for `clientCertificate: 'tls'`. */
  readonly connection: Connection;
  /** Like {@link TokenIssuer.token}, bound to the certificate of this client. */
  token(claims?: JsonObject): string;
  /**
   * Headers of a request through a proxy: for `clientCertificate: 'header'`. The peer must be in `trustProxy`.
   *
   * @example
   * const mtls = await issuer.certificateClient();
   * const headers = mtls.headers({ scope: 'read:messages' });
   */
  headers(claims?: JsonObject): CertificateHeaders;
}

export async function createCertificateClient(mint: (claims: JsonObject) => string): Promise<CertificateClient> {
  const x509 = await requireX509('certificateClient()');
  const { der, certificate, key } = await makeClientCertificate(x509, 'test-client');
  const thumbprint = hash('sha256', der, 'base64url');
  const token: CertificateClient['token'] = (claims) => mint({ cnf: { 'x5t#S256': thumbprint }, ...claims });
  return {
    certificate,
    key,
    thumbprint,
    connection: { encrypted: true, remoteAddress: '127.0.0.1', getPeerCertificate: () => ({ raw: der }) },
    token,
    headers: (claims) => ({
      authorization: `Bearer ${token(claims)}`,
      'client-cert': `:${der.toString('base64')}:`,
    }),
  };
}

/** Loads the optional package that creates certificates. Rejects with an error that states what to install. */
async function requireX509(caller: string): ReturnType<typeof loadX509> {
  return await loadX509().catch((cause: unknown) => {
    const problem = `${caller} needs the optional package @peculiar/x509, which did not load. Install it: `;
    throw new Error(`${problem}npm install --save-dev @peculiar/x509`, { cause });
  });
}

// Not `SelfSigned`: the declaration of its file needs the optional package.
export async function makeCertificate(): Promise<Pick<CertificateClient, 'certificate' | 'key'>> {
  return makeLocalhostCertificate(await requireX509('listen()'), {
    organisation: 'Portcullis test issuer',
    ...unbounded,
  });
}
