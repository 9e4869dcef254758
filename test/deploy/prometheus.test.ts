import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
        .on('error', () => {}) // a call that the killed process had read
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

/** Finds a free port with a free one after it. */
async function findFreePorts(): Promise<number> {
  for (;;) {
    const first = createServer().listen(0, '127.0.0.1');
    await once(first, 'listening');
    const { port } = first.address() as AddressInfo; // it listens on TCP
    const next = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      next.once('error', () => resolve(false)).listen(port + 1, '127.0.0.1', () => resolve(true));
    });
    first.close();
    next.close();
    if (isFree) return port;
  }
}

describe('Prometheus scrapes the two processes of WORKERS=2, and one is killed', {
  timeout: 60_000,
  ...needs('prometheus'),
}, () => {
  let provider: TestProvider;
  let service: ServiceProcess;
  let prometheus: Prometheus;

  beforeAll(async () => {
    provider = await startTestProvider();
    service = await startVariant(findVariant('a'), provider, {
      ...{ WORKERS: '2', DPOP_ENABLED: 'false', LOG_GRANTS: 'none', ADMIN_PORT: String(await findFreePorts()) },
    });
    prometheus = await startPrometheus(
      service.logs.flatMap(({ event, admin_url: url }) => (event === 'listening' ? [new URL(String(url)).host] : [])),
    );
  });
  afterAll(async () => {
    await prometheus?.stop();
    await service?.stop();
    await provider?.close();
  });

  it('the sum of rate() is the rate that was sent, within 5 %', async () => {
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
      expect(await prometheus.query('sum(changes(process_start_time_seconds[14s]))', now)).toEqual([1]);
    } finally {
      calls.stop();
    }
  });
});
