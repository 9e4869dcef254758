import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { makeTestCertificates } from './certificate-maker.ts';

/**
 * Gives each run a folder for the keys and certificates that its test files share, and removes it at the end. The processes
 * of the run trust one authority: Node reads NODE_EXTRA_CA_CERTS only when a process starts.
 */
export async function setup({ provide }: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-kept-'));
  provide('keptFolder', folder);
  const certificates = await makeTestCertificates({ from: -1, to: 1 });
  const { NODE_EXTRA_CA_CERTS: other } = process.env;
  const caFile = join(folder, 'trusted-ca.pem');
  writeFileSync(caFile, `${certificates.ca}\n${other === undefined ? '' : readFileSync(other, 'utf8')}`);
  writeFileSync(join(folder, 'trusted.json'), JSON.stringify(certificates), { mode: 0o600 });
  process.env['NODE_EXTRA_CA_CERTS'] = caFile;
  return () => {
    if (other === undefined) delete process.env['NODE_EXTRA_CA_CERTS'];
    else process.env['NODE_EXTRA_CA_CERTS'] = other;
    rmSync(folder, { recursive: true, force: true });
  };
}
