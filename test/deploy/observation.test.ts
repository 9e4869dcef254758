import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort, until } from '../../tools/shared/network.js';
import { endChild, startChild } from '../../tools/shared/processes.js';
import { useFolder } from '../support/folder.ts';
import { openGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { findChildren } from '../support/processes.ts';
import { needs, requireProgram } from '../support/programs.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';
import { bearer, findVariant, openVariant, startVariant } from '../support/variant-service.ts';

const run = promisify(execFile);
const rules = 'deploy/prometheus/portcullis.rules.yml';
const dashboard = 'deploy/grafana/portcullis.json';

/** Lists the metrics in an expression. Functions and labels of PromQL do not have this prefix. */
function readNames(text: string): ReadonlySet<string> {
  return new Set(
    text.match(/\b(?:portcullis|process|nodejs)_[a-z0-9_]+/g)?.map((name) => name.replace(/_bucket$/, '')),
  );
}

describe('alert rules', needs('promtool'), () => {
  it('are valid', async () => {
    const { stdout } = await run(requireProgram('promtool'), ['check', 'rules', rules]);
    expect(stdout).toMatch(/SUCCESS: \d+ rules found/);
  });

  it('fire when they should, and only then', async () => {
    const { stdout } = await run(requireProgram('promtool'), ['test', 'rules', 'portcullis.rules.test.yml'], {
      cwd: 'deploy/prometheus',
    });
    expect(stdout).toMatch(/SUCCESS/);
  });

  it('each has a section in the runbook', () => {
    const runbook = readFileSync('docs/operations.md', 'utf8');
    const alerts = [...readFileSync(rules, 'utf8').matchAll(/alert: (\w+)/g)].map(([, name]) => name);
    expect(alerts.length).toBeGreaterThan(5);
    for (const alert of alerts) expect(runbook).toContain(`\n### ${alert}\n`);
  });
});

const provider = await useTestProvider();

describe('metrics that alerts and the dashboard name', needs('redis-server'), () => {
  const folder = useFolder();
  const file = (name: string): string => join(folder, name);
  let redis: TestRedis;
  let services: readonly OpenedService[] = [];

  beforeAll(async () => {
    redis = await startTestRedis();
    const { cert, key } = await createTestCertificates();
    await writeFile(file('cert'), cert);
    await writeFile(file('key'), key);
    const open = { issuers: {}, rules: [{ id: 'all', path: '/**', access: 'open' }] };
    // Some metrics exist only with Redis, with the store in memory, or with the files of a gate.
    services = await Promise.all([
      openVariant(findVariant('a'), provider, { REPLAY_STORE: redis.url }),
      openVariant(findVariant('a'), provider),
      openGate(provider, open, { TLS_CERT: file('cert'), TLS_KEY: file('key') }),
    ]);
  });
  afterAll(async () => {
    await Promise.all(services.map((each) => each.stop()));
    await redis?.stop();
  });

  it.each([rules, dashboard])('%s: each exists', async (file) => {
    await send(services[0]?.url ?? '', '/api/private', { headers: bearer(await provider.sign()) });
    const texts = await Promise.all(services.map((each) => send(each.adminUrl ?? '', '/metrics')));
    const known = new Set(texts.flatMap(({ body }) => [...body.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)));
    expect([...readNames(readFileSync(file, 'utf8'))].filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('Prometheus, which scrapes each process of WORKERS=2', needs('prometheus'), () => {
  const folder = useFolder();
  let service: ServiceProcess | undefined;
  let prometheus: ReturnType<typeof startChild> | undefined;
  afterAll(async () => {
    if (prometheus !== undefined) await endChild(prometheus);
    await service?.stop();
  });

  it('adds up all requests, and sees a restart once', async () => {
    const started = await startVariant(findVariant('a'), provider, { WORKERS: '2', DPOP_ENABLED: 'false' });
    service = started;
    const admins = () => started.logs.filter(({ event }) => event === 'listening').map((line) => line['admin_url']);
    await until(() => admins().length === 2);
    const configuration = join(folder, 'prometheus.yml');
    const configure = () => {
      const targets = admins().map((url) => new URL(String(url)).host);
      const jobs = [{ job_name: 'portcullis', static_configs: [{ targets }] }];
      return writeFile(configuration, JSON.stringify({ global: { scrape_interval: '500ms' }, scrape_configs: jobs }));
    };
    await configure();
    const address = `127.0.0.1:${await findFreePort()}`;
    const flags = [
      `--config.file=${configuration}`,
      `--storage.tsdb.path=${folder}`,
      `--web.listen-address=${address}`,
    ];
    prometheus = startChild([requireProgram('prometheus'), ...flags], { stdio: 'ignore' });

    const query = async (text: string): Promise<number> => {
      const { json } = await send(`http://${address}`, `/api/v1/query?query=${encodeURIComponent(text)}`);
      const { data } = json as { data: { result: readonly { value: readonly [number, string] }[] } };
      return Number(data.result[0]?.value[1] ?? 0);
    };
    const sees = (text: string, value: number) =>
      until(async () => (await query(text).catch(() => undefined)) === value, `${text} is not ${value}`);
    await sees('sum(up)', 2);
    const answers = Array.from({ length: 100 }, () => send(started.url, '/api/private'));
    expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([401]));
    await sees('sum(portcullis_requests_total{route="/api/private"})', 100);

    const [victim = 0] = findChildren(started.pid);
    process.kill(victim, 'SIGKILL');
    // The process that replaces it has another port.
    await until(() => admins().length === 3);
    await configure();
    prometheus.child.kill('SIGHUP');
    await sees('sum(up)', 2);
    await sees('count(up == 0)', 1);
    await sees('count(count_over_time(process_start_time_seconds[5m]))', 3);
  });
});
