import { KeyObject, webcrypto } from 'node:crypto';

/** A certificate for localhost and its key; PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

type X509 = typeof import('@peculiar/x509');

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/**
 * Makes a certificate for localhost that can sign no other: whoever trusts it trusts nothing else. Rejects where the
 * optional package that makes it is not installed.
 */
export async function makeCertificate(): Promise<Certificate> {
  const x509 = await loadX509();
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: 'CN=localhost, O=Portcullis test issuer',
      keys,
      signingAlgorithm: algorithm,
      // Bounds without a clock: that of a test is often set to another time, and TLS goes by the clock of the machine.
      notBefore: new Date('2000-01-01T00:00:00Z'),
      notAfter: new Date('9999-12-31T23:59:59Z'),
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
  return { cert: certificate.toString('pem'), key };
}

async function loadX509(): Promise<X509> {
  // A dependency of the package does not load without two functions of a Reflect polyfill, and asks them for metadata
  // that its classes, which take no arguments, do not have. They are there while it loads, and no longer.
  const added = ['getMetadata', 'getOwnMetadata'].filter((name) => !Reflect.has(Reflect, name));
  for (const name of added) Reflect.defineProperty(Reflect, name, { value: nothing, configurable: true });
  try {
    return await import('@peculiar/x509');
  } catch (cause) {
    const text = 'listen() needs the optional package @peculiar/x509, which did not load. Install it: ';
    throw new Error(`${text}npm install --save-dev @peculiar/x509`, { cause });
  } finally {
    for (const name of added) Reflect.deleteProperty(Reflect, name);
  }
}

function nothing(): undefined {}
