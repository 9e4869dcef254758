import '../support/reflect.ts';
import { createHash, webcrypto } from 'node:crypto';
import { X509CertificateGenerator } from '@peculiar/x509';

/** A certificate of a client, as the bytes of it, and what a token is bound to by it. */
export interface ClientCertificate {
  readonly der: Buffer;
  readonly thumbprint: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Makes a self-signed certificate. */
export async function makeClientCertificate(name: string): Promise<ClientCertificate> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await X509CertificateGenerator.createSelfSigned(
    { serialNumber: '01', name: `CN=${name}`, keys, signingAlgorithm: algorithm },
    webcrypto,
  );
  const der = Buffer.from(made.rawData);
  return { der, thumbprint: createHash('sha256').update(der).digest('base64url') };
}
