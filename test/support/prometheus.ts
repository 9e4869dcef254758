import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../tools/shared/folder.js';
import { findFreePort, until } from '../../tools/shared/network.js';
import { endChild, startChild } from '../../tools/shared/processes.js';
import { send } from './http-client.ts';
import { requireProgram } from './programs.ts';

/** A Prometheus that scrapes its targets twice a second. */
export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;

/** Starts Prometheus on a free port of loopback; each target is `host:port`. */
export async function startPrometheus(targets: readonly string[]) {
  const folder = makeFolder('prometheus');
  const file = join(folder, 'prometheus.yml');
  const jobs = `[{ job_name: portcullis, static_configs: [{ targets: ${JSON.stringify(targets)} }] }]`;
  writeFileSync(file, `global: { scrape_interval: 500ms }\nscrape_configs: ${jobs}\n`);
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const flags = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`, '--log.level=error'];
  const words = [requireProgram('prometheus'), ...flags, `--web.listen-address=127.0.0.1:${port}`];
  const running = startChild(words, { stdio: 'ignore' });
  const isReady = async (): Promise<boolean> => (await send(url, '/-/ready')).status === 200;
  await running.orEnd(until(isReady, 'Prometheus is not ready.'), 'Prometheus');
  return {
    /** Values of the series that a query gives, at a time in seconds since the epoch. */
    async query(text: string, time: number): Promise<readonly number[]> {
      const { json } = await send(url, `/api/v1/query?query=${encodeURIComponent(text)}&time=${time}`);
      const { data } = json as { data: { result: readonly { value: readonly [number, string] }[] } }; // its HTTP API
      return data.result.map(({ value }) => Number(value[1]));
    },
    async stop() {
      await endChild(running);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
