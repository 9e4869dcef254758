import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useLocalIdp } from '../../support/local-idp.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { findVariant, startVariant } from '../../support/variant-service.ts';
import { runDoctor } from './run-doctor.ts';

const audience = 'https://api.example/';
const { idp, environment } = await useLocalIdp({ audience });
let service: ServiceProcess;
beforeAll(async () => {
  const { domain, certificateFile: caFile } = idp;
  service = await startVariant(findVariant('a'), { domain, audience, caFile });
});
afterAll(() => service?.stop());

const doctor = async (...args: readonly string[]) => {
  const { status, findings, stderr } = await runDoctor(args, environment);
  return { status, stderr, levels: Object.fromEntries(findings.map(({ check, level }) => [check, level])) };
};
const good = { provider: 'ok', tls: 'ok', clock: 'ok' };

describe('doctor without settings, with a running dev', () => {
  const note = () => `portcullis: no settings are set: checking portcullis dev, which runs ${idp.issuer}\n`;

  it('provider only → checked, with its own certificate', async () => {
    expect(await doctor('--only', 'provider,tls,clock')).toEqual({ status: 0, stderr: note(), levels: good });
  });

  it('provider and service → both are checked', async () => {
    const variables = { IDP_DOMAIN: idp.domain, IDP_AUDIENCE: audience, PORT: '0', ADMIN_PORT: '0' };
    await idp.announceService({ service: service.url }, variables);
    const { status, stderr, levels } = await doctor();
    expect([status, stderr]).toEqual([0, note()]);
    expect(levels).toMatchObject({ ...good, url: 'ok' });
  });

  it('flag of a setting → missing settings are named', async () => {
    await expect(doctor('--clock-tolerance', '1')).rejects.toThrow('IDP_DOMAIN: It is required.');
  });

  it('--from-outside → dev is not checked', async () => {
    const { stderr, levels } = await doctor('--from-outside', service.url);
    expect([stderr, levels['provider']]).toEqual(['', 'skipped']);
  });

  it('dev was stopped → settings are missing', async () => {
    await idp.close();
    await expect(doctor()).rejects.toThrow('IDP_DOMAIN: It is required.');
  });
});
