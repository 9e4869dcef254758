import { KeyObject, webcrypto } from 'node:crypto';

type X509 = typeof import('@peculiar/x509');

/** A certificate that can sign no other, and its key; PEM. */
export type SelfSigned = Awaited<ReturnType<typeof makeSelfSigned>>;

export interface CertificateBounds {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Bounds without a clock: a test often sets its clock to another time, and TLS uses the clock of the host. */
export const unbounded: CertificateBounds = {
  notBefore: new Date('2000-01-01T00:00:00Z'),
  notAfter: new Date('9999-12-31T23:59:59Z'),
};

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Makes a certificate of a client (RFC 8705 §2.2). */
export function makeClientCertificate(x509: X509, name: string): Promise<SelfSigned> {
  const usage = new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]);
  return makeSelfSigned(x509, { name: `CN=${name}`, ...unbounded }, [usage]);
}

/** Makes a certificate for localhost and 127.0.0.1. */
export function makeLocalhostCertificate(
  x509: X509,
  { organisation, ...bounds }: CertificateBounds & { readonly organisation: string },
): Promise<SelfSigned> {
  return makeSelfSigned(x509, { name: `CN=localhost, O=${organisation}`, ...bounds }, [
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    new x509.SubjectAlternativeNameExtension([
      { type: 'dns', value: 'localhost' },
      { type: 'ip', value: '127.0.0.1' },
    ]),
  ]);
}

async function makeSelfSigned(
  x509: X509,
  subject: CertificateBounds & { readonly name: string },
  usage: readonly InstanceType<X509['Extension']>[],
) {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const extensions = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    ...usage,
  ];
  const parameters = { ...subject, keys, signingAlgorithm: algorithm, extensions };
  const made = await x509.X509CertificateGenerator.createSelfSigned(parameters, webcrypto);
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
  return { der: Buffer.from(made.rawData), certificate: made.toString('pem'), key };
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
