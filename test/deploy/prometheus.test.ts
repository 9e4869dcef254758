import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../support/http-client.ts';
import { findChildren } from '../support/processes.ts';
import { needs } from '../support/programs.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { findVariant, startVariant } from '../support/variant-service.ts';

/** Calls a second. */
const rate = 200;
/** Seconds that the rate is taken over. */
const window = 14;

const counter = 'portcullis_requests_total{route="/api/private"}';

/** Sends requests at a fixed rate, regardless of the responses, until it is stopped. */
function startCalls(port: number, token: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const headers = { authorization: `Bearer ${token}` };
  const startedAt = performance.now();
  /** Times of the requests, in seconds since the epoch. */
  const sent: number[] = [];
  const ticking = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * rate;
    while (sent.length < due) {
      sent.push(Date.now() / 1000);
      request({ host: '127.0.0.1', port, path: '/api/private', agent, headers }, (response) => response.resume())
        .on('error', () => {}) // a call that the killed worker had read
        .end();
    }
  }, 5);
  return {
    /** The rate at which calls were sent in the seconds before that time. */
    rateBefore: (time: number): number => sent.filter((at) => at > time - window && at <= time).length / window,
    stop() {
      clearInterval(ticking);
      agent.destroy();
    },
  };
}

describe('Prometheus scrapes two workers, and one is killed', { timeout: 60_000, ...needs('prometheus') }, () => {
  let provider: TestProvider;
  let service: ServiceProcess;
  let prometheus: Prometheus;

  beforeAll(async () => {
    provider = await startTestProvider();
    service = await startVariant(findVariant('a'), provider, { WORKERS: '2', LOG_GRANTS: 'none' });
    await service.findLog(({ event }) => event === 'keys_fetched');
    prometheus = await startPrometheus(new URL(service.adminUrl ?? '').host);
  });
  afterAll(async () => {
    await prometheus?.stop();
    await service?.stop();
    await provider?.close();
  });

  it('rate() is the rate that was sent, within 5 %, and no counter falls', async () => {
    const calls = startCalls(service.port, await provider.sign());
    try {
      // Prometheus needs some seconds to start, and a new series has no rate.
      while ((await prometheus.query(counter, Date.now() / 1000)).length === 0) await sleep(100);
      const begun = Date.now() / 1000;
      await sleep(6000);
      const [victim = 0] = findChildren(service.pid);
      process.kill(victim, 'SIGKILL');
      await service.findLog(({ event }) => event === 'worker_exited');
      await sleep((begun + window) * 1000 - Date.now());
      const now = begun + window;
      const sent = calls.rateBefore(now);
      const [counted = 0] = await prometheus.query(`sum(rate(${counter}[${window}s]))`, now);
      expect(Math.abs(counted / sent - 1)).toBeLessThan(0.05);
      const { body } = await send(service.adminUrl ?? '', '/metrics');
      const counters = [...body.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name);
      const fallen = [];
      let asked = 0;
      for (const name of counters) {
        // None if nothing was counted yet.
        for (const falls of await prometheus.query(`sum(resets(${name}[${window}s]))`, now)) {
          asked++;
          if (falls > 0) fallen.push(name);
        }
      }
      expect(asked).toBeGreaterThan(5);
      expect(fallen).toEqual([]);
      expect(await prometheus.query('portcullis_worker_restarts_total', now)).toEqual([1]);
    } finally {
      calls.stop();
    }
  });
});
