import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Answer, send } from '../../support/http-client.ts';
import type { OpenedService } from '../../support/open-service.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { findVariant, openVariant, startVariant } from '../../support/variant-service.ts';

const provider = await useTestProvider();

async function start(environment: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  const service = await startVariant(findVariant('a'), provider, environment);
  await until(async () => (await readiness(service)).status === 200);
  return service;
}

const readiness = ({ adminUrl = '' }: OpenedService): Promise<Answer> => send(adminUrl, '/readyz');

/** Asks again until it holds; the test's own timeout ends it otherwise. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(50);
}

/** Outcomes of new connections in a second, one every few milliseconds. */
async function callForOneSecond(service: ServiceProcess): Promise<readonly (number | string)[]> {
  const outcomes: (number | string)[] = [];
  for (const end = performance.now() + 1000; performance.now() < end; ) {
    outcomes.push(
      await send(service.url, '/api/public').then(
        ({ status }) => status,
        (error: unknown) => String(error),
      ),
    );
    await sleep(5); // without a pause, both processors do nothing else
  }
  return outcomes;
}

describe('signals', () => {
  it('SIGHUP, with nothing to reload → the service goes on', async () => {
    const service = await start({});
    for (let time = 0; time < 3; time++) {
      service.signal('SIGHUP');
      expect((await send(service.url, '/api/public')).status).toBe(200);
    }
    expect(await service.stop()).toBe(0);
  });

  it('DRAIN_DELAY → not ready immediately, and every new connection is served until it has passed', async () => {
    const service = await start({ DRAIN_DELAY: '2' });
    service.signal('SIGTERM');
    await service.findLog(({ event }) => event === 'draining');
    const { status, json } = await readiness(service);
    expect(status).toBe(503);
    expect(json).toMatchObject({ ready: false, checks: { shutdown: 'in progress' } });
    // Who sends connections here has seen that by now, and stops before the delay has passed.
    const outcomes = await callForOneSecond(service);
    expect(new Set(outcomes)).toEqual(new Set([200]));
    expect(service.logs.some(({ event }) => event === 'shutting_down')).toBe(false);
    expect((await service.ended).code).toBe(0);
    expect(service.logs.some(({ event }) => event === 'shutting_down')).toBe(true);
  });

  it('a second signal while it drains → exits at once', async () => {
    const service = await start({ DRAIN_DELAY: '300' });
    service.signal('SIGTERM');
    await service.findLog(({ event }) => event === 'draining');
    service.signal('SIGTERM');
    expect((await service.ended).code).toBe(143);
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
