// The provider's certificate: self-signed for localhost, and older than any step of the clock.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadX509, makeLocalhostCertificate } from '../../build/testing/certificate/self-signed.js';

const hourMilliseconds = 3_600_000;

/** Makes a certificate and its key, both PEM; the service must trust `certificateFile`; this and `keyFile` are in the folder. */
export async function makeIdentity(folder) {
  const { certificate, key } = await makeLocalhostCertificate(await loadX509(), {
    organisation: 'Portcullis faults',
    notBefore: new Date(Date.now() - hourMilliseconds),
    notAfter: new Date(Date.now() + 24 * hourMilliseconds),
  });
  const certificateFile = join(folder, 'certificate.pem');
  const keyFile = join(folder, 'key.pem');
  await writeFile(certificateFile, certificate);
  await writeFile(keyFile, key, { mode: 0o600 });
  return { certificate, certificateFile, key, keyFile };
}
