import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeLocalhostCertificate } from '../../testing/certificate/self-signed.ts';
import { loadLibraries } from './libraries.ts';

/** Persistent certificate and client secret of the local identity provider. */
export type Identity = ReturnType<typeof identify>;

/** Contents of the files: PEM, and a string. */
type Secrets = Readonly<Record<keyof typeof fileNames, string>>;

/** Seconds. */
const day = 86_400;
const lifetime = 365 * day;

const fileNames = { certificate: 'certificate.pem', key: 'key.pem', clientSecret: 'client-secret' } as const;
const folderName = 'identity';

/** Reads the identity from the cache folder; `undefined` if it is absent or invalid. */
export async function readIdentity(cacheFolder: string): Promise<Identity | undefined> {
  const read = (name: string): Promise<string> => readFile(join(cacheFolder, folderName, name), 'utf8');
  try {
    const certificate = await read(fileNames.certificate);
    const key = await read(fileNames.key);
    const clientSecret = await read(fileNames.clientSecret);
    const fits = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)) && clientSecret.length >= 32;
    return fits ? identify(cacheFolder, { certificate, key, clientSecret }) : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the identity, or creates one if it is absent or expires within a day. `now` in seconds. */
export async function ensureIdentity(cacheFolder: string, now: number): Promise<Identity> {
  const kept = await readLasting(cacheFolder, now);
  if (kept !== undefined) return kept;
  // Renamed atomically, so that a concurrent start never sees half of it.
  const fresh = await mkdtemp(join(cacheFolder, 'identity-'));
  const made = await writeIdentity(fresh, now);
  const target = join(cacheFolder, folderName);
  try {
    await rename(fresh, target);
  } catch {
    const other = await readLasting(cacheFolder, now);
    await rm(other === undefined ? target : fresh, { recursive: true });
    if (other !== undefined) return other;
    await rename(fresh, target);
  }
  return identify(cacheFolder, made);
}

function identify(cacheFolder: string, secrets: Secrets) {
  return {
    ...secrets,
    certificateFile: join(cacheFolder, folderName, fileNames.certificate),
    clientSecretFile: join(cacheFolder, folderName, fileNames.clientSecret),
    /** End of the certificate, in seconds since the epoch. */
    expires: Date.parse(new X509Certificate(secrets.certificate).validTo) / 1000,
  };
}

async function readLasting(cacheFolder: string, now: number): Promise<Identity | undefined> {
  const identity = await readIdentity(cacheFolder);
  return identity !== undefined && identity.expires > now + day ? identity : undefined;
}

async function writeIdentity(folder: string, now: number): Promise<Secrets> {
  const { x509 } = await loadLibraries();
  const { certificate, key } = await makeLocalhostCertificate(x509, {
    organisation: 'Portcullis local identity provider',
    // One minute early, for clocks that are set back.
    notBefore: new Date((now - 60) * 1000),
    notAfter: new Date((now + lifetime) * 1000),
  });
  const secrets = { certificate, key, clientSecret: randomBytes(32).toString('base64url') };
  const names = Object.keys(fileNames) as (keyof Secrets)[]; // the keys are the names
  await Promise.all(names.map((name) => writeFile(join(folder, fileNames[name]), secrets[name], { mode: 0o600 })));
  return secrets;
}
