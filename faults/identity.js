// The provider's certificate: self-signed for localhost, and older than any step of the clock.
import { KeyObject, webcrypto } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const hourMilliseconds = 3_600_000;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Makes a certificate and its key, both PEM; `certificateFile` in the folder is what the service is to trust. */
export async function makeIdentity(folder) {
  const { X509CertificateGenerator, SubjectAlternativeNameExtension } = await loadX509();
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await X509CertificateGenerator.createSelfSigned(
    {
      name: 'CN=localhost',
      keys,
      signingAlgorithm: algorithm,
      notBefore: new Date(Date.now() - hourMilliseconds),
      notAfter: new Date(Date.now() + 24 * hourMilliseconds),
      extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: 'localhost' }])],
    },
    webcrypto,
  );
  const certificate = made.toString('pem');
  const certificateFile = join(folder, 'certificate.pem');
  await writeFile(certificateFile, certificate);
  return {
    certificate,
    certificateFile,
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

async function loadX509() {
  // A dependency of the package does not load without these, and never needs what they would return.
  for (const name of ['getMetadata', 'getOwnMetadata']) Reflect[name] ??= () => undefined;
  return import('@peculiar/x509');
}
