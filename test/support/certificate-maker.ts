import { KeyObject, webcrypto } from 'node:crypto';
import { loadX509 } from '../../src/testing/certificate/self-signed.ts';
import type { ClientCertificate, TestCertificates, TestValidity } from './tls.ts';

const {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} = await loadX509();
const day = 86_400_000;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/**
 * Makes a self-signed authority and a certificate for localhost, 127.0.0.1, ::1 and more hosts, the authority valid for a day
 * around now.
 */
export async function makeTestCertificates(
  { from, to }: TestValidity,
  hosts: readonly string[] = [],
): Promise<TestCertificates> {
  const authorityKeys = await generateKeys();
  const serverKeys = await generateKeys();
  const validity = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
  const authority = await X509CertificateGenerator.createSelfSigned(
    {
      ...validity,
      serialNumber: '01',
      name: 'CN=Portcullis test authority',
      keys: authorityKeys,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(authorityKeys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  const server = await X509CertificateGenerator.create(
    {
      notBefore: new Date(Date.now() + from * day),
      notAfter: new Date(Date.now() + to * day),
      serialNumber: '02',
      subject: 'CN=localhost',
      issuer: authority.subject,
      publicKey: serverKeys.publicKey,
      signingKey: authorityKeys.privateKey,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension([
          { type: 'dns', value: 'localhost' },
          { type: 'ip', value: '127.0.0.1' },
          { type: 'ip', value: '::1' },
          ...hosts.map((value) => ({ type: 'dns', value }) as const),
        ]),
        await AuthorityKeyIdentifierExtension.create(authorityKeys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  return {
    ca: authority.toString('pem'),
    cert: server.toString('pem'),
    key: exportPrivateKey(serverKeys.privateKey),
  };
}

/** Creates a self-signed client certificate; trusting it trusts only that client. Both PEM. */
export async function makeClientCertificate(
  { from, to }: TestValidity = { from: -1, to: 1 },
): Promise<ClientCertificate> {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      ...{ notBefore: new Date(Date.now() + from * day), notAfter: new Date(Date.now() + to * day) },
      serialNumber: '03',
      name: 'CN=Portcullis test client',
      keys,
      signingAlgorithm: algorithm,
      extensions: [new BasicConstraintsExtension(true, 0, true)],
    },
    webcrypto,
  );
  return { cert: certificate.toString('pem'), key: exportPrivateKey(keys.privateKey) };
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

function exportPrivateKey(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }).toString();
}
