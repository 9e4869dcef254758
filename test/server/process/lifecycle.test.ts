import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, openRaw, readStatuses, send } from '../../support/http-client.ts';
import { findChildren, isGone } from '../../support/processes.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { bearer, findVariant, startVariant } from '../../support/variant-service.ts';

let provider: TestProvider;

beforeAll(async () => {
  provider = await startTestProvider();
});
afterAll(() => provider.close());

async function start(environment: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  const service = await startVariant(findVariant('a'), provider, environment);
  const { WORKERS = '1' } = environment;
  await until(async () => {
    const { status, body } = await readiness(service);
    return status === 200 && (WORKERS === '1' || body.includes(`${WORKERS} of ${WORKERS} ready`));
  });
  return service;
}

const readiness = ({ adminUrl = '' }: ServiceProcess): Promise<Answer> => send(adminUrl, '/readyz');

/** Asks again until it holds; the test's own timeout ends it otherwise. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(50);
}

/** What becomes of new connections, one every few milliseconds, until `over` settles. */
async function callUntil(service: ServiceProcess, over: Promise<unknown>): Promise<readonly (number | string)[]> {
  const outcomes: (number | string)[] = [];
  let ended = false;
  void over.finally(() => {
    ended = true;
  });
  while (!ended) {
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

describe.each(['1', '2'])('WORKERS=%s', { timeout: 60_000 }, (WORKERS) => {
  it('SIGHUP, with nothing to reload → the service goes on', async () => {
    const service = await start({ WORKERS });
    for (let time = 0; time < 3; time++) {
      service.signal('SIGHUP');
      for (const child of findChildren(service.pid)) process.kill(child, 'SIGHUP');
      expect((await send(service.url, '/api/public')).status).toBe(200);
    }
    expect(service.logs.some(({ event }) => event === 'worker_exited')).toBe(false);
    expect(await service.stop()).toBe(0);
  });

  it('DRAIN_DELAY → not ready immediately, and every new connection is served until it has passed', async () => {
    const service = await start({ WORKERS, DRAIN_DELAY: '2' });
    service.signal('SIGTERM');
    await service.findLog(({ event }) => event === 'draining');
    const { status, json } = await readiness(service);
    expect(status).toBe(503);
    expect(json).toMatchObject({ ready: false, checks: { shutdown: 'in progress' } });
    // Who sends connections here has seen that by now, and stops before the delay has passed.
    const outcomes = await callUntil(service, sleep(1000));
    expect(new Set(outcomes)).toEqual(new Set([200]));
    expect(service.logs.some(({ event }) => event === 'shutting_down')).toBe(false);
    expect((await service.ended).code).toBe(0);
    expect(service.logs.some(({ event }) => event === 'shutting_down')).toBe(true);
  });

  it('a second signal while it drains → exits at once', async () => {
    const service = await start({ WORKERS, DRAIN_DELAY: '300' });
    const children = findChildren(service.pid);
    service.signal('SIGTERM');
    await service.findLog(({ event }) => event === 'draining');
    service.signal('SIGTERM');
    expect((await service.ended).code).toBe(143);
    await until(() => children.every(isGone));
  });
});

describe('a signal to all processes at once, as a terminal and systemd send it', { timeout: 60_000 }, () => {
  it('SIGTERM with a drain → no worker ends before the drain is over', async () => {
    const service = await start({ WORKERS: '2', DRAIN_DELAY: '2' });
    for (const pid of [...findChildren(service.pid), service.pid]) process.kill(pid, 'SIGTERM');
    await service.findLog(({ event }) => event === 'draining');
    const outcomes = await callUntil(service, sleep(1000));
    expect(new Set(outcomes)).toEqual(new Set([200]));
    expect(service.logs.some(({ event }) => event === 'shutting_down')).toBe(false);
    expect((await service.ended).code).toBe(0);
    expect(service.logs.some(({ event }) => event === 'worker_exited')).toBe(false);
  });

  it('SIGTERM to one worker only → it completes its requests, and another replaces it', async () => {
    const service = await start({ WORKERS: '2' });
    const [victim = 0] = findChildren(service.pid);
    // On a connection of each: an answer, and a request that is not complete.
    const request = 'GET /api/public HTTP/1.1\r\nHost: a\r\n';
    const held = [openRaw(service.port), openRaw(service.port)];
    for (const connection of held) {
      connection.write(`${request}\r\n${request}`);
      await connection.receive(/"Public endpoint/);
    }
    process.kill(victim, 'SIGTERM');
    await service.findLog(({ event }) => event === 'shutting_down');
    for (const connection of held) connection.write('Connection: close\r\n\r\n');
    for (const { closed } of held) expect(readStatuses(await closed)).toEqual([200, 200]);
    await service.findLog(({ event, code }) => event === 'worker_exited' && code === 0);
    await until(async () => (await readiness(service)).body.includes('2 of 2 ready'));
    expect(await service.stop()).toBe(0);
  });
});

describe('a worker that hangs', { timeout: 60_000 }, () => {
  it('is skipped, reported as not ready, and replaced; another worker serves connections it had not accepted', async () => {
    const service = await start({ WORKERS: '2' });
    const [victim = 0] = findChildren(service.pid);
    process.kill(victim, 'SIGSTOP');
    // Half of these are handed to it before anybody knows.
    const early = Promise.all(Array.from({ length: 10 }, () => send(service.url, '/api/public')));
    expect((await readiness(service)).status).toBe(503);
    await sleep(2500);
    const late = await Promise.all(Array.from({ length: 10 }, () => send(service.url, '/api/public')));
    expect(new Set(late.map(({ status }) => status))).toEqual(new Set([200]));
    expect(isGone(victim)).toBe(false);

    const line = await service.findLog(({ event }) => event === 'worker_silent');
    expect(line).toMatchObject({ level: 'error', seconds: 5 });
    expect(new Set((await early).map(({ status }) => status))).toEqual(new Set([200]));
    await until(async () => (await readiness(service)).body.includes('2 of 2 ready'));
    expect(findChildren(service.pid)).not.toContain(victim);
    expect(await service.stop()).toBe(0);
  });

  it('SIGTERM meanwhile → the service still ends', async () => {
    const service = await start({ WORKERS: '2' });
    const [victim = 0] = findChildren(service.pid);
    process.kill(victim, 'SIGSTOP');
    expect(await service.stop()).toBe(0);
    expect(isGone(victim)).toBe(true);
  });

  it('the primary process hangs → no worker is treated as dead', async () => {
    const service = await start({ WORKERS: '2' });
    const children = findChildren(service.pid);
    service.signal('SIGSTOP');
    await sleep(7000);
    service.signal('SIGCONT');
    await sleep(1500);
    expect(findChildren(service.pid)).toEqual(children);
    expect(service.logs.some(({ event }) => event === 'worker_silent')).toBe(false);
    expect((await send(service.url, '/api/private', { headers: bearer(await provider.sign()) })).status).toBe(200);
    expect(await service.stop()).toBe(0);
  });
});

describe.each(['1', '2'])('readiness while Redis is away, WORKERS=%s', { timeout: 60_000 }, (WORKERS) => {
  const away = { WORKERS, REPLAY_STORE: 'redis://127.0.0.1:1' };

  it('Bearer is accepted → ready, and degraded', async () => {
    const service = await start(away);
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
    const service = await startVariant(findVariant('a'), provider, { ...away, DPOP_REQUIRED: 'true' });
    await service.findLog(({ event }) => event === 'keys_fetched');
    await until(async () => (await readiness(service)).body.includes('"keys":"ok"'));
    const { status, json } = await readiness(service);
    expect(status).toBe(503);
    expect(json).toMatchObject({ ready: false, degraded: ['replay'] });
    expect(await service.stop()).toBe(0);
  });
});
