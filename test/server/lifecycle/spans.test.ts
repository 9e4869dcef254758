import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { useFolder } from '../../support/folder.ts';
import { send } from '../../support/http-client.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { bearer, findVariant, startVariant } from '../../support/variant-service.ts';

const provider = await useTestProvider();
const folder = useFolder();

/** An SDK that gathers spans for a minute, as SDKs do, and writes the names of those that it exports to a file. */
const sdk = (file: string): string => `
  import { appendFileSync } from 'node:fs';
  import { createRequire } from 'node:module';
  const require = createRequire(${JSON.stringify(import.meta.url)});
  const { trace } = require('@opentelemetry/api');
  const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base');
  const exporter = {
    export(spans, done) {
      appendFileSync(${JSON.stringify(file)}, spans.map(({ name }) => name + '\\n').join(''));
      done({ code: 0 });
    },
    shutdown: async () => {},
    forceFlush: async () => {},
  };
  const spanProcessors = [new BatchSpanProcessor(exporter, { scheduledDelayMillis: 60_000 })];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
`;

it('the last spans are sent before the service ends', async () => {
  const [preload, file] = [join(folder, `sdk.mjs`), join(folder, `spans`)];
  await writeFile(preload, sdk(file));
  const service = await startVariant(findVariant('a'), provider, { NODE_OPTIONS: `--import=${preload}` });
  const headers = bearer(await provider.sign());
  const answers = await Promise.all(Array.from({ length: 10 }, () => send(service.url, '/api/private', { headers })));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(await service.stop()).toBe(0);
  const names = (await readFile(file, 'utf8')).split('\n').filter((name) => name === 'authorize');
  expect(names).toHaveLength(10);
  const lines = service.logs.filter(({ event }) => event === 'request');
  expect(lines).toHaveLength(10);
});
