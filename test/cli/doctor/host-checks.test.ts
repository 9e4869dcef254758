import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../../tools/shared/network.js';
import { startTestProvider } from '../../support/test-provider.ts';
import { createTestCertificates } from '../../support/tls.ts';
import { findVariant, readEnvironment, startVariant } from '../../support/variant-service.ts';
import { codesOf, runDoctor } from './run-doctor.ts';

let folder: string;
let server: Server;
let used: string;
const file = (name: string): string => join(folder, name);
const base = { IDP_DOMAIN: 'localhost:9', IDP_AUDIENCE: 'urn:api' };

/** Writes a certificate, valid from and to these days, and its key. */
async function writeCertificate(name: string, validity?: { readonly from: number; readonly to: number }) {
  const { cert, key } = await createTestCertificates(validity);
  await writeFile(file(`${name}.pem`), cert);
  await writeFile(file(`${name}.key`), key);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-host-'));
  await writeCertificate('valid', { from: -1, to: 60 });
  await writeCertificate('expired', { from: -2, to: -1 });
  await writeCertificate('early', { from: 1, to: 2 });
  await writeCertificate('ending', { from: -1, to: 13 });
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  await writeFile(file('other.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  await writeFile(file('broken.pem'), 'not PEM');
  await mkdir(file('cache'));
  server = createServer((_, response) => response.end());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  used = String((server.address() as AddressInfo).port); // it listens on TCP
});
afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const tls =
  (cert: string, key = `${cert}.key`) =>
  () => ({
    TLS_CERT: file(cert.includes('.') ? cert : `${cert}.pem`),
    TLS_KEY: file(key),
  });
const free = async () => ({ PORT: String(await findFreePort()), ADMIN_PORT: '0' });
type Settings = () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;

describe('the host of the service', () => {
  it.each<[string, string, Settings]>([
    ['certificate', 'valid certificate', tls('valid')],
    ['ports', 'free ports', async () => ({ ...(await free()), HOST: '127.0.0.1' })],
    ['cache', 'writable folder', () => ({ KEYS_CACHE: file('cache/keys.json') })],
  ])('%s: %s → ok', async (check, _, settings) => {
    const { status, findings } = await runDoctor(['--only', check], { ...base, ...(await settings()) });
    expect([status, findings.map(({ level }) => level)]).toEqual([0, ['ok']]);
  });

  it('expired certificate → D220', async () => {
    for (const name of ['expired', 'early']) {
      const { status, findings } = await runDoctor(['--only', 'certificate'], { ...base, ...tls(name)() });
      expect(codesOf(findings)).toEqual(['D220']);
      expect(status).toBe(1);
    }
  });

  it('key of another certificate → D221', async () => {
    const { findings } = await runDoctor(['--only', 'certificate'], { ...base, ...tls('valid', 'other.key')() });
    expect(codesOf(findings)).toEqual(['D221']);
  });

  it.each([
    ['missing.pem', 'TLS_CERT: ENOENT'],
    ['broken.pem', 'TLS_CERT: the file is not PEM'],
  ])('certificate file %s → D222', async (name, seen) => {
    const { findings } = await runDoctor(['--only', 'certificate'], { ...base, ...tls(name, 'valid.key')() });
    expect(codesOf(findings)).toEqual(['D222']);
    expect(findings[0]?.seen).toBe(seen);
  });

  it('certificate for another name than EXTERNAL_URL → D223', async () => {
    const { findings } = await runDoctor(['--only', 'certificate'], {
      ...{ ...base, ...tls('valid')() },
      EXTERNAL_URL: 'https://api.example',
    });
    expect(codesOf(findings)).toEqual(['D223']);
    expect(findings.find(({ code }) => code === 'D223')?.expected).toBe('api.example');
  });

  it('certificate with 13 days left → D224, a warning: exit 0', async () => {
    const { status, findings } = await runDoctor(['--only', 'certificate'], { ...base, ...tls('ending')() });
    expect(codesOf(findings)).toEqual(['D224']);
    expect(status).toBe(0);
  });

  it('port of another process → D230 with its setting', async () => {
    for (const settings of [
      { PORT: used, ADMIN_PORT: '0' },
      { PORT: '0', ADMIN_PORT: used },
    ]) {
      const { status, findings } = await runDoctor(['--only', 'ports'], { ...base, HOST: '127.0.0.1', ...settings });
      expect(codesOf(findings)).toEqual(['D230']);
      expect(findings[0]?.fix).toContain(settings.PORT === used ? 'PORT' : 'ADMIN_PORT');
      expect(status).toBe(1);
    }
  });

  it('ports of the running service → skipped', async () => {
    const provider = await startTestProvider();
    const service = await startVariant(findVariant('a'), provider);
    const { findings } = await runDoctor(['--only', 'ports'], {
      ...readEnvironment(findVariant('a'), provider),
      PORT: String(service.port),
      ADMIN_PORT: new URL(service.adminUrl ?? '').port,
    });
    await service.stop();
    await provider.close();
    expect(findings).toMatchObject([{ level: 'skipped', seen: expect.stringContaining('running') }]);
  });

  it('address of another host → D231', async () => {
    const { findings } = await runDoctor(['--only', 'ports'], { ...base, HOST: '192.0.2.1', ...(await free()) });
    expect(codesOf(findings)).toEqual(['D231']);
  });

  it('upstream that is up → ok; down → D240', async () => {
    await writeFile(file('rules.json'), '{"issuers":{},"rules":[{"id":"a","path":"/**","access":"open"}]}');
    const run = (port: string | number) =>
      runDoctor(['--only', 'upstream'], { RULES: file('rules.json'), UPSTREAM: `http://127.0.0.1:${port}` });
    expect((await run(used)).findings).toMatchObject([{ level: 'ok' }]);
    const { status, findings } = await run(await findFreePort());
    expect(codesOf(findings)).toEqual(['D240']);
    expect(status).toBe(1);
  });

  it('folder of KEYS_CACHE is missing → D250', async () => {
    const { findings } = await runDoctor(['--only', 'cache'], { ...base, KEYS_CACHE: file('missing/keys.json') });
    expect(codesOf(findings)).toEqual(['D250']);
    expect(findings[0]?.fix).toContain(`install -d -m 700 ${file('missing')}`);
  });
});
