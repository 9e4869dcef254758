import { type LocalhostCertificate, loadX509, makeLocalhostCertificate } from '../certificate/localhost-certificate.ts';

/** Loads the optional package that makes certificates. Rejects with what to install if it is not there. */
export async function requireX509(caller: string): ReturnType<typeof loadX509> {
  return await loadX509().catch((cause: unknown) => {
    const text = `${caller} needs the optional package @peculiar/x509, which did not load. Install it: `;
    throw new Error(`${text}npm install --save-dev @peculiar/x509`, { cause });
  });
}

/** Makes the certificate of a test issuer. */
export async function makeCertificate(): Promise<LocalhostCertificate> {
  return makeLocalhostCertificate(await requireX509('listen()'), {
    organisation: 'Portcullis test issuer',
    // Bounds without a clock: that of a test is often set to another time, and TLS goes by the clock of the machine.
    notBefore: new Date('2000-01-01T00:00:00Z'),
    notAfter: new Date('9999-12-31T23:59:59Z'),
  });
}
