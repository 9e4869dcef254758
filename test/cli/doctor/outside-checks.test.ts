import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../../tools/shared/network.js';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { createTestCertificates, type TestCertificates } from '../../support/tls.ts';
import { findVariant, readEnvironment, startVariant } from '../../support/variant-service.ts';
import { type BentProxy, type ProxyBend, startBentProxy } from './bent-proxy.ts';
import { codesOf, runDoctor } from './run-doctor.ts';

const origin = 'https://app.example';
let provider: TestProvider;
let service: ServiceProcess;
let certificates: TestCertificates;
let folder: string;
let caFile: string;
let proxy: BentProxy | undefined;

beforeAll(async () => {
  provider = await startTestProvider();
  service = await startVariant(findVariant('a'), provider, { CORS_ORIGINS: origin, TRUST_PROXY: '127.0.0.1' });
  certificates = await createTestCertificates();
  folder = await mkdtemp(join(tmpdir(), 'portcullis-doctor-'));
  caFile = join(folder, 'ca.pem');
  await writeFile(caFile, certificates.ca);
});
afterAll(async () => {
  await service.stop();
  await provider.close();
  await rm(folder, { recursive: true });
});
afterEach(async () => {
  await proxy?.close();
  proxy = undefined;
});

const only = ['--only', 'outside,headers,cors,admin'];
const settings = (more: Readonly<Record<string, string>> = {}) => ({
  ...readEnvironment(findVariant('a'), provider),
  NODE_EXTRA_CA_CERTS: caFile,
  CORS_ORIGINS: origin,
  ...more,
});

/** The findings about the service behind such a proxy. */
async function examine(bend: ProxyBend, more: Readonly<Record<string, string>> = {}, target = service.url) {
  proxy = await startBentProxy(target, bend);
  return runDoctor([...only, '--from-outside', proxy.url], settings(more));
}

describe('service behind a correct proxy', () => {
  it('→ no finding, exit 0', async () => {
    const { status, findings } = await examine({ tls: certificates, sets: { 'x-forwarded-proto': 'https' } });
    expect(findings.map(({ check, level, seen }) => [check, level, level === 'ok' ? '' : seen])).toEqual([
      ['outside', 'ok', ''],
      ['headers', 'ok', ''],
      ['cors', 'ok', ''],
      ['admin', 'ok', ''],
    ]);
    expect(status).toBe(0);
  });

  it('no settings → the checks from outside run', async () => {
    const { findings } = await runDoctor(['--from-outside', service.url, '--only', 'provider,outside,headers'], {});
    expect(findings.map(({ level }) => level)).toEqual(['skipped', 'ok', 'ok']);
  });
});

describe('one defect', () => {
  it('the proxy ends TLS and TRUST_PROXY does not name it → D130: the service calls itself http', async () => {
    const { status, findings } = await examine({ tls: certificates });
    expect(codesOf(findings)).toEqual(['D130']);
    expect(status).toBe(1);
    const host = new URL(proxy?.url ?? '').host;
    expect(findings[0]).toMatchObject({
      seen: `the service sees http://${host}, its clients use https://${host}/api/private`,
      fix: expect.stringContaining('X-Forwarded-Proto, and trust it: TRUST_PROXY='),
    });
  });

  it('the same with EXTERNAL_URL → D130 names EXTERNAL_URL, because forwarded headers are ignored', async () => {
    const { findings } = await examine({ tls: certificates }, { EXTERNAL_URL: 'http://localhost' });
    expect(codesOf(findings)).toEqual(['D130']);
    const { fix = '' } = findings[0] ?? {};
    expect(fix).toContain(`EXTERNAL_URL=${new URL(proxy?.url ?? '').origin}`);
    expect(fix).not.toMatch(/TRUST_PROXY|X-Forwarded/);
  });

  it('proxy replaces Host → D130', async () => {
    const { findings } = await examine({ sets: { host: 'internal.example' } });
    expect(codesOf(findings)).toEqual(['D130']);
    expect(findings[0]?.fix).toContain('X-Forwarded-Host');
  });

  it('nothing listens → D131', async () => {
    const { findings } = await runDoctor(
      ['--only', 'outside', '--from-outside', `http://127.0.0.1:${await findFreePort()}`],
      settings(),
    );
    expect(codesOf(findings)).toEqual(['D131']);
  });

  it('nothing listens → the other checks are skipped', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`;
    const { findings } = await runDoctor(['--only', 'headers,cors,admin', '--from-outside', url], settings());
    expect(findings.map(({ level }) => level)).toEqual(['skipped', 'skipped', 'skipped']);
    expect(findings[2]?.seen).toBe(`${url}/metrics: ECONNREFUSED`);
  });

  it('the URL is open → D132', async () => {
    const { findings } = await runDoctor(
      ['--only', 'outside', '--from-outside', `${service.url}/api/public`],
      settings(),
    );
    expect(codesOf(findings)).toEqual(['D132']);
  });

  it('https to the port of plain HTTP → D133', async () => {
    const url = service.url.replace('http:', 'https:');
    const { findings } = await runDoctor(['--only', 'outside', '--from-outside', url], settings());
    expect(codesOf(findings)).toEqual(['D133']);
    const others = await runDoctor(['--only', 'headers,cors,admin', '--from-outside', url], settings());
    expect(others.findings.map(({ level }) => level)).toEqual(['skipped', 'skipped', 'skipped']);
  });

  it('proxy removes Authorization → D170', async () => {
    expect(codesOf((await examine({ strips: ['authorization'] })).findings)).toEqual(['D170']);
  });

  it('proxy removes DPoP → D171', async () => {
    expect(codesOf((await examine({ strips: ['dpop'] })).findings)).toEqual(['D171']);
  });

  it('proxy responds to preflights → D161', async () => {
    expect(codesOf((await examine({ answers: ['OPTIONS'] })).findings)).toEqual(['D161']);
  });

  it('proxy without a server for OPTIONS → D162, with allowed origins or without', async () => {
    const bend = { answers: ['OPTIONS'], answerStatus: 502 };
    expect(codesOf((await examine(bend)).findings)).toEqual(['D162']);
    await proxy?.close();
    expect(codesOf((await examine(bend, { CORS_ORIGINS: '' })).findings)).toEqual(['D162']);
  });

  it('proxy strips a prefix → D134 with EXTERNAL_URL', async () => {
    proxy = await startBentProxy(service.url, { prefix: '/v1' });
    const url = `${proxy.url}/v1/api/private`;
    const { findings } = await runDoctor(['--only', 'outside', '--from-outside', url], settings());
    expect(codesOf(findings)).toEqual(['D134']);
    expect(findings[0]).toMatchObject({
      seen: 'the proxy strips /v1: the service sees /api/private',
      fix: `EXTERNAL_URL=${proxy.url}/v1`,
    });
  });

  it('no origin is allowed → D160, a warning: exit 0', async () => {
    const closed = await startVariant(findVariant('a'), provider);
    try {
      const { status, findings } = await examine({}, { CORS_ORIGINS: '' }, closed.url);
      expect(codesOf(findings)).toEqual(['D160']);
      expect(status).toBe(0);
    } finally {
      await closed.stop();
    }
  });

  it('the proxy leads /metrics to the admin listener → D190', async () => {
    const { findings } = await examine({ elsewhere: { '/metrics': service.adminUrl ?? '' } });
    expect(codesOf(findings)).toEqual(['D190']);
  });

  it('admin port reachable under the name of the clients → D190', async () => {
    const port = new URL(service.adminUrl ?? '').port;
    // On Linux this address leads to the machine itself, and it is not one of loopback.
    const url = service.url.replace('127.0.0.1', '0.0.0.0');
    const { findings } = await runDoctor(['--only', 'admin', '--from-outside', url], settings({ ADMIN_PORT: port }));
    expect(codesOf(findings)).toEqual(['D190']);
    expect(findings[0]?.seen).toBe(`http://0.0.0.0:${port}/metrics returns the metrics`);
  });
});
