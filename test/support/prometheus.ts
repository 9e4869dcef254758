import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../tools/shared/network.js';
import { send } from './http-client.ts';
import { requireProgram } from './programs.ts';
import { superviseChild } from './service-process.ts';

/** A Prometheus that scrapes its targets twice a second. */
export interface Prometheus {
  /** Values of the series that a query gives, at a time in seconds since the epoch. */
  query(text: string, time: number): Promise<readonly number[]>;
  stop(): Promise<void>;
}

/** Starts Prometheus on a free port of loopback; each target is `host:port`. */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-prometheus-'));
  const file = join(folder, 'prometheus.yml');
  await writeFile(
    file,
    `global: { scrape_interval: 500ms }
scrape_configs: [{ job_name: portcullis, static_configs: [{ targets: ${JSON.stringify(targets)} }] }]
`,
  );
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const flags = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`];
  const child = spawn(
    requireProgram('prometheus'),
    [...flags, `--web.listen-address=127.0.0.1:${port}`, '--log.level=error'],
    { stdio: 'ignore' },
  );
  const ended = superviseChild(child);
  const isReady = (): Promise<boolean> =>
    send(url, '/-/ready').then(
      ({ status }) => status === 200,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}.`);
    await sleep(50);
  }
  return {
    async query(text, time) {
      const { json } = await send(url, `/api/v1/query?query=${encodeURIComponent(text)}&time=${time}`);
      const { data } = json as { data: { result: readonly { value: readonly [number, string] }[] } }; // its HTTP API
      return data.result.map(({ value }) => Number(value[1]));
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
