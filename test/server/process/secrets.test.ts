import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createNonces } from '../../../src/core/dpop/nonce.ts';
import { createRotatingNonces } from '../../../src/server/process/secrets.ts';
import { type Answer, send } from '../../support/http-client.ts';
import { hashToken, makeProofKey, mintProof, thumbprintOf } from '../../support/proofs.ts';
import { awaitReady, type ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { findVariant, startVariant } from '../../support/variant-service.ts';

const [first, second] = ['first-secret-of-at-least-32-bytes!', 'second-secret-of-at-least-32-bytes'] as const;

describe('nonces whose secret is replaced', () => {
  it('nonces under the previous secret are accepted for a while, and get a new one', () => {
    let now = 1000;
    const nonces = createRotatingNonces(first, () => now);
    const old = nonces.issue(now);
    nonces.rotate(second);
    expect(nonces.issue(now)).toBe(createNonces({ secret: second }).issue(now));
    expect(nonces.check(old, now)).toBe('previous');
    expect(nonces.check(nonces.issue(now), now)).toBe('current');
    now += 240;
    // Whoever knows the secret before could still make nonces of this moment.
    expect(nonces.check(createNonces({ secret: first }).issue(now), now)).toBe('invalid');
  });

  it('the same secret again, or a short one → nothing changes', () => {
    const nonces = createRotatingNonces(first);
    nonces.rotate(first);
    expect(() => nonces.rotate('short')).toThrow(TypeError);
    expect(nonces.check(nonces.issue(1000), 1000)).toBe('current');
  });
});

describe('the running service', { timeout: 40_000 }, () => {
  let provider: TestProvider;
  let folder: string;
  beforeAll(async () => {
    provider = await startTestProvider();
    folder = await mkdtemp(join(tmpdir(), 'portcullis-secrets-'));
  });
  afterAll(async () => {
    await provider.close();
    await rm(folder, { recursive: true });
  });
  const key = makeProofKey();

  async function call(
    service: ServiceProcess,
    { origin = service.url, nonce, repeats = true }: { origin?: string; nonce?: string; repeats?: boolean },
  ): Promise<Answer> {
    const token = await provider.sign({ cnf: { jkt: thumbprintOf(key.jwk) } });
    const iat = Math.floor(Date.now() / 1000);
    const claims = { jti: randomUUID(), htm: 'GET', htu: `${origin}/api/private`, iat, ath: hashToken(token), nonce };
    const headers = ['Authorization', `DPoP ${token}`, 'DPoP', mintProof(claims, { key })];
    const answer = await send(service.url, '/api/private', { headers });
    const wanted = answer.headers.get('dpop-nonce');
    // A service that has just started cannot know what was accepted before, and asks for a nonce once.
    const isAsked = answer.body.includes('use_dpop_nonce') && wanted !== undefined && nonce === undefined;
    return isAsked && repeats ? call(service, { origin, nonce: wanted }) : answer;
  }

  it('SIGHUP after the file of a secret has changed → nonces are made under the new one; a bad file changes nothing', async () => {
    const file = join(folder, 'nonce-secret');
    await writeFile(file, first);
    const environment = { DPOP_NONCE: 'required', DPOP_NONCE_SECRET_FILE: file };
    const service = await startVariant(findVariant('a'), provider, environment);
    const issue = (secret: string): string => createNonces({ secret }).issue(Date.now() / 1000);
    // A proof of the second of the start may have been used before it.
    const takesFirst = async (): Promise<number> => (await call(service, { nonce: issue(first) })).status;
    await expect.poll(takesFirst, { timeout: 10_000 }).toBe(200);
    await awaitReady(service);

    await writeFile(file, 'short');
    service.signal('SIGHUP');
    const failed = await service.findLog(({ event }) => event === 'reload_failed');
    expect(JSON.stringify(failed)).toContain('DPOP_NONCE_SECRET');
    expect(JSON.stringify(failed)).not.toContain('short');
    expect((await call(service, { nonce: issue(first) })).status).toBe(200);

    await writeFile(file, second);
    service.signal('SIGHUP');
    await expect.poll(() => service.logs.filter(({ event }) => event === 'secrets_reloaded').length).toBe(1);
    expect((await call(service, { nonce: issue(second) })).status).toBe(200);
    expect((await call(service, { nonce: issue(first) })).status).toBe(200);
    expect((await call(service, { repeats: false })).status).toBe(401);
    expect(await service.stop()).toBe(0);
    expect(JSON.stringify(service.logs)).not.toContain('-secret-of-at-least');
  });

  it('EXTERNAL_URL → proofs must match it, whatever Host says', async () => {
    const service = await startVariant(findVariant('a'), provider, {
      EXTERNAL_URL: 'https://api.example/orders',
    });
    expect((await call(service, { origin: 'https://api.example/orders' })).status).toBe(200);
    expect((await call(service, {})).status).toBe(401);
    const metadata = await send(service.url, '/.well-known/oauth-protected-resource');
    expect(metadata.json).toMatchObject({ resource_documentation: 'https://api.example/orders/docs' });
    expect((await send(service.url, '/api/public', { headers: ['Host', 'a@b'] })).status).toBe(400);
    expect(await service.stop()).toBe(0);
  });

  it('a misspelt variable → one line in the log', async () => {
    const service = await startVariant(findVariant('a'), provider, { KEEP_ALIV: '10' });
    await service.findLog(({ event }) => event === 'setting_unknown');
    expect(await service.stop()).toBe(0);
    const lines = service.logs.filter(({ event }) => event === 'setting_unknown');
    expect(lines).toEqual([
      expect.objectContaining({ level: 'warn', variable: 'KEEP_ALIV', fix: expect.stringContaining('KEEP_ALIVE') }),
    ]);
  });
});
