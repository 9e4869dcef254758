import { type LocalhostCertificate, loadX509, makeLocalhostCertificate } from '../certificate/localhost-certificate.ts';

/** Loads the optional package that creates certificates. Rejects with an error that states what to install. */
export async function requireX509(caller: string): ReturnType<typeof loadX509> {
  return await loadX509().catch((cause: unknown) => {
    const problem = `${caller} needs the optional package @peculiar/x509, which did not load. Install it: `;
    throw new Error(`${problem}npm install --save-dev @peculiar/x509`, { cause });
  });
}

export async function makeCertificate(): Promise<LocalhostCertificate> {
  return makeLocalhostCertificate(await requireX509('listen()'), {
    organisation: 'Portcullis test issuer',
    // Fixed bounds: the clock of a test is often set to another time, and TLS uses the clock of the host.
    notBefore: new Date('2000-01-01T00:00:00Z'),
    notAfter: new Date('9999-12-31T23:59:59Z'),
  });
}
