import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, send } from '../../support/http-client.ts';
import { findChildren } from '../../support/processes.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { bearer, findLine, findVariant, startVariant } from '../../support/variant-service.ts';

let provider: TestProvider;
let service: ServiceProcess;

beforeAll(async () => {
  provider = await startTestProvider();
  service = await startVariant(findVariant('a'), provider, { WORKERS: '2' });
  await until(async () => (await readiness()).body.includes('2 of 2 ready'));
});
afterAll(async () => {
  await service.stop();
  await provider.close();
});

const readiness = (): Promise<Answer> => send(service.adminUrl ?? '', '/readyz');
const call = (token: string): Promise<Answer> => send(service.url, '/api/private', { headers: bearer(token) });

/** Asks again until it holds; the test's own timeout ends it otherwise. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(50);
}

/** One of the connections of one worker is not enough: calls go to both in turn. */
async function callBoth(token: string): Promise<readonly number[]> {
  const answers = await Promise.all(Array.from({ length: 20 }, () => call(token)));
  return answers.map(({ status }) => status);
}

describe('keys with two workers', { timeout: 60_000 }, () => {
  it('one process fetches them', () => {
    expect(provider.requests('jwks')).toBe(1);
    expect(service.logs.filter(({ event }) => event === 'keys_fetched')).toHaveLength(1);
  });

  it('a new key of the provider → found within the first call, by both, with one fetch', async () => {
    await provider.rotate();
    expect(await callBoth(await provider.sign())).toEqual(Array(20).fill(200));
    expect(provider.requests('jwks')).toBe(2);
  });

  it('a flood with unknown keys, over both workers → no more fetches than one process would make, and each is 401', async () => {
    const before = provider.requests('jwks');
    const tokens = await Promise.all(
      Array.from({ length: 40 }, (_, index) => provider.sign({}, { header: { kid: `unknown-${index}` } })),
    );
    const startedAt = performance.now();
    const answers = await Promise.all(tokens.map(call));
    // The bucket holds three at most and gets one more each 10 s (docs/behaviour.md §4), so this is the most that any stretch
    // of that length can see. On an idle machine the flood is over within a second, and three are allowed.
    const allowed = 3 + Math.floor((performance.now() - startedAt) / 10_000);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    for (const answer of answers) expect((await findLine(service, answer))['reason']).toBe('unknown_kid');
    expect(provider.requests('jwks') - before).toBeLessThanOrEqual(allowed);
  });

  it('a worker that ends before it has said how it is → is not counted: no connection goes to it any more', async () => {
    const [victim = 0] = findChildren(service.pid);
    process.kill(victim, 'SIGSTOP');
    const asked = readiness();
    // Long enough for the question to be on its way to a worker that cannot answer.
    await sleep(200);
    process.kill(victim, 'SIGKILL');
    const { status, body } = await asked;
    expect([status, body]).toEqual([200, expect.stringContaining('1 of 2 ready')]);
    await until(async () => (await readiness()).body.includes('2 of 2 ready'));
  });

  it('provider down, one worker killed → every valid request is 200, and the service stays ready', async () => {
    await provider.down();
    const token = await provider.sign();
    const [victim = 0] = findChildren(service.pid);
    let restarted = false;
    const outcomes: (number | string)[] = [];
    const refused: string[] = [];
    const caller = (async () => {
      while (!restarted) {
        // A call that the killed worker had read ends with it.
        outcomes.push(
          await call(token).then(
            ({ status }) => status,
            () => 'reset',
          ),
        );
        const { status, body } = await readiness();
        if (status !== 200) refused.push(body);
      }
    })();
    process.kill(victim, 'SIGKILL');
    await service.findLog(({ event }) => event === 'worker_exited');
    await until(async () => (await readiness()).body.includes('2 of 2 ready'));
    restarted = true;
    await caller;
    outcomes.push(...(await callBoth(token)));
    expect(outcomes.filter((outcome) => outcome !== 200 && outcome !== 'reset')).toEqual([]);
    expect(outcomes.filter((outcome) => outcome === 'reset').length).toBeLessThanOrEqual(3);
    expect(refused).toEqual([]);
    await provider.up();
  });
});
