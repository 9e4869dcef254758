import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createReadExternalUrl } from '../../src/core/http/external-url.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createApp } from '../../src/serve/app.ts';
import { type App, Exchange } from '../../src/server/http/exchange.ts';
import { readSettings } from '../../src/server/settings/settings.ts';
import type { Endpoint } from '../../src/server/variants/endpoints.ts';
import { createTestIssuer } from '../../src/testing/index.ts';

const issuer = createTestIssuer({ alg: 'ES256' });
const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, algorithms: ['ES256'] });
const result = readSettings({ args: [], environment: { IDP_DOMAIN: 'idp.example', IDP_AUDIENCE: issuer.audience } });
if (result.kind !== 'settings') throw new Error('The settings are not valid.');
const { settings } = result;

const defect = new Error('a defect of this program');
const endpoint: Endpoint = {
  path: '/api/private',
  summary: 'Fails.',
  schema: {},
  access: {},
  answer: () => {
    throw defect;
  },
};

/** As the server is while it has to wait: for keys, or for a replay store. */
const waiting: ResourceServer = {
  ...server,
  judge: (request, policy, connection) => setImmediate().then(() => server.judge(request, policy, connection)),
};

function open(endpoints: readonly Endpoint[], resourceServer: ResourceServer): App {
  return createApp({
    settings: { ...settings, variant: { ...settings.variant, endpoints } },
    mode: 'off',
    resourceServer,
    readExternalUrl: createReadExternalUrl({ trust: 'none' }),
  });
}

function call(app: App, path: string, credentials: Record<string, string>) {
  const headers = new Headers({ host: 'api.example', ...credentials });
  const exchange = new Exchange({ method: 'GET', url: `http://api.example${path}`, headers }, new Socket());
  return { exchange, answer: app(exchange, path) };
}

it.each([
  ['judged at once', server],
  ['judged later', waiting],
])(
  '%s, and the endpoint throws → 500 and a log line with the cause, never a rejection',
  async (_when, resourceServer) => {
    const { exchange, answer } = call(open([endpoint], resourceServer), '/api/private', issuer.headers());
    expect(await answer).toMatchObject({ status: 500 });
    expect(exchange).toMatchObject({ reason: 'unexpected', cause: defect });
  },
);

it("frequent requests → each response is for the request's own token and endpoint", async () => {
  let made = 0;
  const show = (path: string): Endpoint => ({
    ...endpoint,
    path,
    answer({ sub }) {
      made++;
      return { path, sub };
    },
  });
  const app = open(['/one', '/two'].map(show), server);
  const callers = ['ann', 'ben', 'cleo'].map((sub) => ({ sub, headers: issuer.headers({ sub }) }));
  const calls = Array.from({ length: 20 }).flatMap(() =>
    callers.flatMap(({ sub, headers }) => ['/one', '/two'].map((path) => ({ sub, headers, path }))),
  );
  const bodies = await Promise.all(
    calls.map(async ({ path, headers }) => (await call(app, path, headers).answer).body),
  );
  expect(bodies).toEqual(calls.map(({ path, sub }) => JSON.stringify({ path, sub })));
  // Most of them were not made anew.
  expect(made).toBeLessThan(calls.length / 2);
});
