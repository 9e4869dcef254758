import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openTraces } from '../../../src/server/observation/traces.ts';
import { useFolder } from '../../support/folder.ts';
import { send } from '../../support/http-client.ts';
import { listen } from '../../support/listening.ts';
import { superviseChild } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { bearer } from '../../support/variant-service.ts';

interface Span {
  readonly name: string;
  readonly trace: string;
  readonly id: string;
  readonly parent: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface Line {
  readonly event: string;
  readonly [field: string]: unknown;
}

const folder = realpathSync(useFolder());
let provider: TestProvider;
let upstream: Awaited<ReturnType<typeof listen>>;
let received: IncomingHttpHeaders[] = [];
const stops: (() => Promise<unknown>)[] = [];

/** An SDK with a context manager and a propagator, as distributions have them; it appends each span to a file. */
const sdk = `
import { AsyncLocalStorage } from 'node:async_hooks';
import { appendFileSync } from 'node:fs';
import { context, propagation, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
const storage = new AsyncLocalStorage();
context.setGlobalContextManager({
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (entered, run, self, ...args) => storage.run(entered, () => run.apply(self, args)),
  bind: (_, target) => target,
  enable() { return this; },
  disable() { return this; },
});
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
const exporter = {
  export(spans, done) {
    for (const { name, attributes, parentSpanContext, spanContext } of spans.map((span) => ({ ...span, name: span.name, attributes: span.attributes, parentSpanContext: span.parentSpanContext, spanContext: span.spanContext() })))
      appendFileSync(process.env.SPANS, JSON.stringify({ name, attributes, id: spanContext.spanId, trace: spanContext.traceId, parent: parentSpanContext?.spanId }) + '\\n');
    done({ code: 0 });
  },
  shutdown: async () => {},
  forceFlush: async () => {},
};
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
`;

beforeAll(async () => {
  if (!existsSync('dist/cli/main.js')) throw new Error('the build is missing; run: npm run build');
  provider = await startTestProvider();
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly dependencies: object };
  // The package without the optional peer, the same with it, and the SDK in another tree.
  cpSync('dist', join(folder, 'package/dist'), { recursive: true });
  cpSync('package.json', join(folder, 'package/package.json'));
  for (const name of Object.keys(dependencies)) {
    const link = join(folder, 'package/node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(resolve('node_modules', name), link);
  }
  cpSync(join(folder, 'package'), join(folder, 'complete'), { recursive: true });
  cpSync('node_modules/@opentelemetry/api', join(folder, 'complete/node_modules/@opentelemetry/api'), {
    recursive: true,
  });
  cpSync('node_modules/@opentelemetry', join(folder, 'sdk/node_modules/@opentelemetry'), { recursive: true });
  writeFileSync(join(folder, 'sdk/sdk.mjs'), sdk);
  upstream = await listen(
    createServer((incoming, outgoing) => {
      received.push(incoming.headers);
      outgoing.end('{}');
    }),
  );
});
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
  received = [];
});
afterAll(async () => {
  await upstream.close();
  await provider.close();
});

let runs = 0;

/** Starts a command of the package in the folder of the SDK. */
async function start(
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
  tree: 'package' | 'complete' = 'package',
) {
  const file = join(folder, `spans-${runs++}`);
  writeFileSync(file, '');
  const child = spawn(process.execPath, [join(folder, tree, 'dist/cli/main.js'), ...words], {
    cwd: join(folder, 'sdk'),
    env: {
      ...{ PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: 'off', SPANS: file },
      ...{ NODE_EXTRA_CA_CERTS: provider.caFile, ...environment },
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const ended = superviseChild(child);
  const lines: Line[] = [];
  createInterface({ input: child.stdout as Readable }).on('line', (text) => void lines.push(JSON.parse(text))); // piped
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  stops.push(stop);
  const [{ url }] = (await once(child, 'message')) as [{ readonly url: string }];
  const readSpans = (): readonly Span[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  return { url, lines, stop, readSpans };
}

const load = (): { readonly NODE_OPTIONS: string } => ({ NODE_OPTIONS: `--import=${join(folder, 'sdk/sdk.mjs')}` });
const settings = (): Readonly<Record<string, string>> => ({
  IDP_DOMAIN: provider.domain,
  IDP_AUDIENCE: provider.audience,
});
const warnings = (lines: readonly Line[]): readonly Line[] =>
  lines.filter(({ event }) => event === 'traces_not_recorded');

describe('an SDK outside the tree of the package', () => {
  it('the API next to the package → a server span for each request from the first one on, with authorize inside', async () => {
    const service = await start(['serve'], { ...settings(), ...load() }, 'complete');
    const headers = bearer(await provider.sign());
    const answers = [];
    for (let i = 0; i < 5; i++) answers.push(await send(service.url, '/api/private?secret=1', { headers }));
    await send(service.url, '/api/private', { headers: ['Authorization', 'Bearer a.b.c'] });
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    await service.stop();
    const spans = service.readSpans();
    const servers = spans.filter(({ name }) => name === 'GET /api/private');
    const authorizations = spans.filter(({ name }) => name === 'authorize');
    expect([servers.length, authorizations.length]).toEqual([6, 6]);
    expect(servers[0]?.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.route': '/api/private',
      'http.response.status_code': 200,
      'url.path': '/api/private',
      'url.scheme': 'http',
    });
    expect(JSON.stringify(spans)).not.toContain('secret');
    expect(new Set(authorizations.map(({ parent }) => parent))).toEqual(new Set(servers.map(({ id }) => id)));
    const granted = {
      'portcullis.outcome': 'granted',
      'portcullis.scheme': 'Bearer',
      'portcullis.issuer': provider.issuer,
    };
    expect(authorizations[0]?.attributes).toEqual(granted);
    // Nothing of a token that was not verified is an attribute.
    expect(authorizations.at(-1)?.attributes).toEqual({
      'portcullis.outcome': expect.stringMatching(/^malformed/),
      'portcullis.scheme': 'Bearer',
    });
    expect(warnings(service.lines)).toEqual([]);
  });

  it('no API next to the package → one warning with the fix, although the working directory has the API', async () => {
    const service = await start(['serve'], { ...settings(), ...load() });
    await send(service.url, '/api/public', {});
    await service.stop();
    expect(warnings(service.lines)).toEqual([
      expect.objectContaining({ level: 'warn', fix: expect.stringContaining('Install @opentelemetry/api') }),
    ]);
    expect(service.readSpans().filter(({ name }) => name !== 'authorize')).toEqual([]);
  });
});

describe('traces that are configured', () => {
  it('OTEL_TRACES_EXPORTER=otlp without an SDK → a warning of the service', async () => {
    const { lines, stop } = await start(['serve'], { ...settings(), OTEL_TRACES_EXPORTER: 'otlp' });
    await stop();
    expect(warnings(lines)).toMatchObject([{ level: 'warn', setting: 'OTEL_TRACES_EXPORTER' }]);
  });

  it.each<[Readonly<Record<string, string>>, string | undefined]>([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1' }, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, 'OTEL_TRACES_EXPORTER'],
    [{}, undefined],
    [{ OTEL_TRACES_EXPORTER: 'none' }, undefined],
    [{ OTEL_TRACES_EXPORTER: 'otlp', OTEL_SDK_DISABLED: 'true' }, undefined],
  ])('%j without an SDK → a warning that names %s', async (environment, setting) => {
    const written: unknown[] = [];
    await openTraces(environment, { write: (...line) => void written.push(line) });
    const fields = expect.objectContaining({ setting, fix: expect.stringContaining('--import') });
    expect(written).toEqual(setting === undefined ? [] : [['warn', 'traces_not_recorded', fields]]);
  });
});

describe('the gate as the proxy', () => {
  const trace = 'a'.repeat(32);
  const sent = ['traceparent', `00-${trace}-${'b'.repeat(16)}-01`, 'tracestate', 'vendor=1'];

  async function startGate(more: Readonly<Record<string, string>>, tree?: 'complete') {
    const rules = join(folder, 'rules.json');
    const { issuer, audience } = provider;
    const entries = [{ id: 'orders', path: '/**' }];
    writeFileSync(rules, JSON.stringify({ issuers: { main: { issuer, audience } }, rules: entries }));
    return start(['gate', '--rules', rules, '--upstream', upstream.origin], more, tree);
  }

  it('with an SDK → the upstream gets the span of the gate as the parent; authorize names the rule', async () => {
    const gate = await startGate(load(), 'complete');
    const headers = [...bearer(await provider.sign()), ...sent];
    expect((await send(gate.url, '/orders', { headers })).status).toBe(200);
    await gate.stop();
    const spans = gate.readSpans();
    const server = spans.find(({ name }) => name === 'GET orders');
    expect(server).toMatchObject({ trace, parent: 'b'.repeat(16) });
    expect(received[0]?.['traceparent']).toBe(`00-${trace}-${server?.id}-01`);
    expect(received[0]?.['tracestate']).toBe('vendor=1');
    expect(spans.find(({ name }) => name === 'authorize')?.attributes['portcullis.rule']).toBe('orders');
  });

  it('without an SDK → the upstream gets the trace of the client unchanged', async () => {
    const gate = await startGate({});
    const headers = [...bearer(await provider.sign()), ...sent];
    expect((await send(gate.url, '/orders', { headers })).status).toBe(200);
    expect(received[0]).toMatchObject({ traceparent: sent[1], tracestate: sent[3] });
  });
});
