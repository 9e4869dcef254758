import { KeyObject, webcrypto } from 'node:crypto';

type X509 = typeof import('@peculiar/x509');

export interface ClientCertificate {
  readonly der: Buffer;
  /** PEM. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Makes a self-signed certificate (RFC 8705 §2.2). */
export async function makeClientCertificate(x509: X509, name: string): Promise<ClientCertificate> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${name}`,
      keys,
      signingAlgorithm: algorithm,
      // Bounds without a clock: a test often sets its clock to another time, and TLS uses the clock of the host.
      notBefore: new Date('2000-01-01T00:00:00Z'),
      notAfter: new Date('9999-12-31T23:59:59Z'),
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
      ],
    },
    webcrypto,
  );
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
  return { der: Buffer.from(made.rawData), certificate: made.toString('pem'), key };
}
