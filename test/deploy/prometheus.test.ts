import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../support/http-client.ts';
import { findChildren } from '../support/processes.ts';
import { needs } from '../support/programs.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { findVariant, startVariant } from '../support/variant-service.ts';

const counter = 'portcullis_requests_total{route="/api/private"}';

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
  ...needs('prometheus'),
}, () => {
  let provider: TestProvider;
  let service: ServiceProcess;
  let prometheus: Prometheus;
  let headers: readonly string[];
  let sent = 0;

  beforeAll(async () => {
    provider = await startTestProvider();
    headers = ['Authorization', `Bearer ${await provider.sign()}`];
    service = await startVariant(findVariant('a'), provider, {
      ...{ WORKERS: '2', DPOP_ENABLED: 'false', LOG_GRANTS: 'none', ADMIN_PORT: String(await findFreePorts()) },
    });
    // The start of the service ends with its first process.
    await service.findLog(({ event, admin_url: url }) => event === 'listening' && url !== service.adminUrl);
    prometheus = await startPrometheus(
      service.logs.flatMap(({ event, admin_url: url }) => (event === 'listening' ? [new URL(String(url)).host] : [])),
    );
  });
  afterAll(async () => {
    await prometheus?.stop();
    await service?.stop();
    await provider?.close();
  });

  const query = (text: string) => prometheus.query(text, Date.now() / 1000);
  /** Sends requests until both processes have responded to this many, as Prometheus knows. */
  async function callBoth(least: number): Promise<void> {
    await expect
      .poll(async () => {
        const answers = Array.from({ length: 20 }, () => send(service.url, '/api/private', { headers }));
        for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
        sent += answers.length;
        return (await query(`${counter} >= ${least}`)).length;
      })
      .toBe(2);
  }

  it('the sum over both is every request, without the requests of a killed process', async () => {
    await callBoth(50);
    await expect.poll(() => query(`sum(${counter})`)).toEqual([sent]);

    const [victim = 0] = findChildren(service.pid);
    const before = await query(counter);
    process.kill(victim, 'SIGKILL');
    await service.findLog(({ event }) => event === 'worker_exited');
    await expect.poll(() => query('sum(changes(process_start_time_seconds[5m]))')).toEqual([1]);
    await callBoth(1);
    const left = before.map((count) => sent - count);
    await expect.poll(async () => left.includes((await query(`sum(${counter})`))[0] ?? 0)).toBe(true);
    expect(await query(`sum(resets(${counter}[5m]))`)).toEqual([1]);
  });
});
