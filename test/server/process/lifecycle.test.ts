import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Answer, send } from '../../support/http-client.ts';
import type { OpenedService } from '../../support/open-service.ts';
import { awaitReady } from '../../support/service-process.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { findVariant, openVariant, startVariant } from '../../support/variant-service.ts';

const provider = await useTestProvider();

const readiness = ({ adminUrl = '' }: OpenedService): Promise<Answer> => send(adminUrl, '/readyz');

/** Asks again until it holds; the test's own timeout ends it otherwise. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(50);
}

describe('signals', () => {
  it('SIGHUP, with nothing to reload → the service goes on', async () => {
    const service = await startVariant(findVariant('a'), provider);
    await awaitReady(service);
    for (let time = 0; time < 3; time++) {
      service.signal('SIGHUP');
      expect((await send(service.url, '/api/public')).status).toBe(200);
    }
    expect(await service.stop()).toBe(0);
  });

  it('DRAIN_DELAY → not ready immediately, and a new connection is served until it has passed', async () => {
    const service = await openVariant(findVariant('a'), provider, { DRAIN_DELAY: '2' });
    const stopped = service.stop();
    await service.findLog(({ event }) => event === 'draining');
    const { status, json } = await readiness(service);
    expect(status).toBe(503);
    expect(json).toMatchObject({ ready: false, checks: { shutdown: 'in progress' } });
    expect((await send(service.url, '/api/public')).status).toBe(200);
    expect(service.logs.some(({ event }) => event === 'shutting_down')).toBe(false);
    expect(await stopped).toBe(0);
    expect(service.logs.some(({ event }) => event === 'shutting_down')).toBe(true);
  });
});

describe('readiness while Redis is away', () => {
  const away = { REPLAY_STORE: 'redis://127.0.0.1:1' };

  it('Bearer is accepted → ready, and degraded', async () => {
    const service = await openVariant(findVariant('a'), provider, away);
    await until(async () => (await readiness(service)).status === 200);
    const { status, json } = await readiness(service);
    expect(status).toBe(200);
    expect(json).toMatchObject({
      ready: true,
      degraded: ['replay'],
      checks: { keys: 'ok', replay: expect.stringMatching(/Redis/) },
    });
    expect(await service.stop()).toBe(0);
  });

  it('only DPoP is accepted → not ready', async () => {
    const service = await openVariant(findVariant('a'), provider, { ...away, DPOP_REQUIRED: 'true' });
    await service.findLog(({ event }) => event === 'keys_fetched');
    await until(async () => (await readiness(service)).body.includes('"keys":"ok"'));
    const { status, json } = await readiness(service);
    expect(status).toBe(503);
    expect(json).toMatchObject({ ready: false, degraded: ['replay'] });
    expect(await service.stop()).toBe(0);
  });
});
