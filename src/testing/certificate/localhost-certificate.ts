import { KeyObject, webcrypto } from 'node:crypto';

type X509 = typeof import('@peculiar/x509');

export interface LocalhostCertificateOptions {
  readonly organisation: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** A certificate for localhost and 127.0.0.1, and its key; PEM. */
export interface LocalhostCertificate {
  readonly certificate: string;
  readonly key: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Creates a certificate that can sign no other: trust in it extends to nothing else. */
export async function makeLocalhostCertificate(
  x509: X509,
  { organisation, notBefore, notAfter }: LocalhostCertificateOptions,
): Promise<LocalhostCertificate> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=localhost, O=${organisation}`,
      keys,
      signingAlgorithm: algorithm,
      notBefore,
      notAfter,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([
          { type: 'dns', value: 'localhost' },
          { type: 'ip', value: '127.0.0.1' },
        ]),
      ],
    },
    webcrypto,
  );
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
  return { certificate: certificate.toString('pem'), key };
}

/** Loads the optional package that makes certificates; rejects as `import` does where it is not installed. */
export async function loadX509(): Promise<X509> {
  // A dependency of this package does not load without two functions of a Reflect polyfill, and reads metadata that its
  // classes, which take no arguments, do not have. They are present while it loads, and no longer.
  const added = ['getMetadata', 'getOwnMetadata'].filter((name) => !Reflect.has(Reflect, name));
  for (const name of added) Reflect.defineProperty(Reflect, name, { value: nothing, configurable: true });
  try {
    return await import('@peculiar/x509');
  } finally {
    for (const name of added) Reflect.deleteProperty(Reflect, name);
  }
}

function nothing(): undefined {}
