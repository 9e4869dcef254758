import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keptFolder, nextPlace } from './kept.ts';

/** A certificate authority of one test run and a server certificate that it signed; all PEM. */
export interface TestCertificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Days from today to the start and the end of the validity of the server certificate. */
export interface TestValidity {
  readonly from: number;
  readonly to: number;
}

/** A self-signed client certificate; trusting it trusts only that client. Both PEM. */
export type ClientCertificate = Omit<TestCertificates, 'ca'>;

const usual: TestValidity = { from: -1, to: 1 };

/**
 * A self-signed authority and a certificate for localhost, 127.0.0.1, ::1 and more hosts, others at each call. Both are
 * valid for a day around now.
 */
export function createTestCertificates(
  validity?: TestValidity,
  hosts: readonly string[] = [],
): Promise<TestCertificates> {
  return validity === undefined && hosts.length === 0
    ? takeOrMake('certificates', async () => (await loadMaker()).makeTestCertificates(usual))
    : loadMaker().then(({ makeTestCertificates }) => makeTestCertificates(validity ?? usual, hosts));
}

/** The certificates whose authority every process of the run trusts. Only in a run, which has {@link trustedCaFile}. */
export function takeTrustedCertificates(): TestCertificates {
  const folder = keptFolder() ?? '';
  return JSON.parse(readFileSync(join(folder, 'trusted.json'), 'utf8')) as TestCertificates; // kept-folder.ts wrote it
}

/** The authority of {@link takeTrustedCertificates}, for NODE_EXTRA_CA_CERTS; `undefined` outside a run. */
export function trustedCaFile(): string | undefined {
  const folder = keptFolder();
  return folder === undefined ? undefined : join(folder, 'trusted-ca.pem');
}

/** A certificate for a client, another at each call. */
export function createClientCertificate(): Promise<ClientCertificate> {
  return takeOrMake('client-certificate', async () => (await loadMaker()).makeClientCertificate());
}

/** Number of certificates before the first one is used again. */
const count = 12;

/** The package that makes certificates takes longer to load than most test files run. */
function loadMaker(): Promise<typeof import('./certificate-maker.ts')> {
  return import('./certificate-maker.ts');
}

async function takeOrMake<T extends ClientCertificate>(kind: string, make: () => Promise<T>): Promise<T> {
  const place = nextPlace(kind, count);
  const kept = place.read();
  if (kept !== undefined) return JSON.parse(kept) as T; // written below
  const made = await make();
  place.write(JSON.stringify(made));
  return made;
}
