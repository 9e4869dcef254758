import { hash } from 'node:crypto';
import { loadX509, makeClientCertificate } from '../../src/testing/certificate/self-signed.ts';

/** A certificate of a client, as the bytes of it, and what a token is bound to by it. */
export interface ClientCertificate {
  readonly der: Buffer;
  readonly thumbprint: string;
}

/** Makes a self-signed certificate. */
export async function makeCertificate(name: string): Promise<ClientCertificate> {
  const { der } = await makeClientCertificate(await loadX509(), name);
  return { der, thumbprint: hash('sha256', der, 'base64url') };
}
