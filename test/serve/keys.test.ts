import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { startForwardProxy } from '../support/forward-proxy.ts';
import { type Answer, send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { bearer, findLine, findVariant, openVariant, startInVain, variants } from '../support/variant-service.ts';

const running: OpenedService[] = [];
const providers: TestProvider[] = [];

afterAll(async () => {
  await Promise.all(running.map((service) => service.stop()));
  await Promise.all(providers.map((provider) => provider.close()));
});

async function openProvider(): Promise<TestProvider> {
  const provider = await startTestProvider();
  providers.push(provider);
  return provider;
}

async function open(
  name: 'a' | 'b',
  provider: Pick<TestProvider, 'domain' | 'audience' | 'caFile'>,
  environment: Readonly<Record<string, string>> = {},
): Promise<OpenedService> {
  const service = await openVariant(findVariant(name), provider, environment);
  running.push(service);
  return service;
}

function get({ url }: OpenedService, token?: string): Promise<Answer> {
  return send(url, '/api/private', token === undefined ? {} : { headers: bearer(token) });
}

const readiness = ({ adminUrl = '' }: OpenedService): Promise<Answer> => send(adminUrl, '/readyz');

/** Asks again until the status is as wanted; the test's own timeout ends it otherwise. */
async function until(status: number, ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.status === status) return answer;
    await sleep(50);
  }
}

type Act = (provider: TestProvider) => Promise<void> | void;

/** What fails is in the catalogue: here are a connection, a status and a document. */
const faults: readonly (readonly [title: string, why: RegExp, harm: Act, mend: Act])[] = [
  ['that is down', /accepts no connection/, (each) => each.down(), (each) => each.up()],
  ['that fails', /provider fails\. \(500\)/, (each) => each.inject('status_500'), (each) => each.mend()],
  ['of another name', /names another issuer/, (each) => each.inject('wrong_issuer'), (each) => each.mend()],
];

describe('a provider at the start', () => {
  it.each(faults)('%s → A starts, says why it is not ready, and recovers; B exits 69', async (_, why, harm, mend) => {
    const provider = await openProvider();
    await harm(provider);
    const { end, stderr } = await startInVain(open('b', provider));
    expect(end).toEqual({ code: 69, signal: null });
    expect(stderr).toMatch(why);
    expect(stderr).toMatch(/^the keys of https:\/\/localhost:\d+\/ could not be loaded/);

    const service = await open('a', provider);
    expect((await send(service.url, '/api/public')).status).toBe(200);
    const token = await provider.sign();

    const refused = await get(service, token);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(refused.headers.has('www-authenticate')).toBe(false);
    expect((await findLine(service, refused))['reason']).toBe('keys_unavailable');
    const unready = await readiness(service);
    expect(unready.status).toBe(503);
    expect(unready.json).toEqual({ ready: false, checks: { keys: expect.stringMatching(why) } });
    const { level } = await service.findLog(({ event }) => event === 'keys_fetch_failed');
    expect(level).toBe('warn');

    await mend(provider);
    expect((await until(200, () => get(service, token))).status).toBe(200);
    expect((await until(200, () => readiness(service))).json).toEqual({ ready: true, checks: { keys: 'ok' } });
  });

  it('discovery alone down → A takes the well-known key set, B exits 69', async () => {
    const provider = await openProvider();
    provider.inject('not_found', 'discovery');
    const service = await open('a', provider);
    expect((await get(service, await provider.sign())).status).toBe(200);
    expect((await startInVain(open('b', provider))).end.code).toBe(69);
  });

  it('that publishes broken keys too → one line for each, the rest is used', async () => {
    const provider = await openProvider();
    for (const jwk of [{ kty: 'oct', k: 'c2VjcmV0', kid: 'symmetric' }, { kty: 'RSA', kid: 'halved' }, 'no key']) {
      provider.publish(jwk);
    }
    for (const name of ['a', 'b'] as const) {
      const service = await open(name, provider);
      expect((await get(service, await provider.sign())).status).toBe(200);
      await service.findLog(({ event, dropped }) => event === 'keys_fetched' && dropped === 3);
      expect(service.logs.filter(({ event }) => event === 'key_dropped')).toHaveLength(3);
      expect(JSON.stringify(service.logs)).not.toContain('c2VjcmV0');
    }
  });
});

it('variant A: a new key → 200; a withdrawn one → 401, for an accepted token too; the provider down → unchanged', async () => {
  const provider = await openProvider();
  const service = await open('a', provider);
  const old = await provider.sign();
  expect((await get(service, old)).status).toBe(200);
  const { kid } = provider;
  await provider.rotate();
  provider.withdraw(kid);
  const statuses = async () => [(await get(service, await provider.sign())).status, (await get(service, old)).status];
  expect(await statuses()).toEqual([200, 401]);
  await provider.down();
  expect(await statuses()).toEqual([200, 401]);
  expect((await readiness(service)).status).toBe(200);
  expect(provider.requests('jwks')).toBe(2);
});

describe('variant B', () => {
  it('keys are loaded once → no further request, whatever comes', async () => {
    const provider = await openProvider();
    const service = await open('b', provider);
    const good = await provider.sign();
    const unknown = await Promise.all(
      Array.from({ length: 50 }, (_, index) => provider.sign({}, { header: { kid: `unknown-${index}` } })),
    );
    const refused = await Promise.all(unknown.map((token) => get(service, token)));
    for (const answer of refused) {
      expect(answer.status).toBe(401);
      expect((await findLine(service, answer))['reason']).toBe('unknown_kid');
    }
    await provider.rotate();
    expect((await get(service, await provider.sign())).status).toBe(401);
    await provider.down();
    expect((await get(service, good)).status).toBe(200);
    expect((await readiness(service)).status).toBe(200);
    expect([provider.requests('discovery'), provider.requests('jwks')]).toEqual([1, 1]);
  });
});

describe('a domain written with https://', () => {
  it.each(variants)(
    'variant $name → starts, warns once, refuses every token, sends no request',
    async ({ name, names }) => {
      const provider = await openProvider();
      const service = await open(name, {
        ...provider,
        audience: provider.audience,
        domain: `https://${provider.domain}`,
      });
      expect((await send(service.url, '/api/public')).status).toBe(200);
      for (const iss of [provider.issuer, `https://https://${provider.domain}/`, `https://${provider.domain}`]) {
        const answer = await get(service, await provider.sign({ iss }));
        expect(answer.status).toBe(401);
        expect(answer.body).toContain('invalid issuer');
        expect((await findLine(service, answer))['reason']).toBe('invalid_issuer');
      }
      const unready = await readiness(service);
      expect(unready.status).toBe(503);
      expect(unready.body).toContain(`${names.domain} has a scheme`);
      const warnings = service.logs.filter(({ level }) => level === 'warn');
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatchObject({ event: 'domain_has_scheme', fix: expect.stringContaining(names.domain) });
      expect(await provider.connections()).toBe(0);
      expect([provider.requests('discovery'), provider.requests('jwks')]).toEqual([0, 0]);
      const metadata = await send(service.url, '/.well-known/oauth-protected-resource');
      expect(metadata.json).not.toHaveProperty('authorization_servers');
    },
  );
});

describe('a forward proxy', needs('tinyproxy'), () => {
  it.each(variants)('variant $name → HTTPS_PROXY carries every call, NO_PROXY none', async ({ name }) => {
    const provider = await openProvider();
    const credentials = { user: 'somebody', password: 'proxy-password' };
    const proxy = await startForwardProxy({ port: provider.port, credentials });
    try {
      const through = await open(name, provider, { HTTPS_PROXY: proxy.url });
      expect((await get(through, await provider.sign())).status).toBe(200);
      const connects = await proxy.connects();
      expect(new Set(connects)).toEqual(new Set([provider.domain]));
      const around = await open(name, provider, { HTTPS_PROXY: proxy.url, NO_PROXY: 'localhost' });
      expect((await get(around, await provider.sign())).status).toBe(200);
      expect(await proxy.connects()).toEqual(connects);
      expect(JSON.stringify(through.logs)).not.toContain('proxy-password');
    } finally {
      await proxy.close();
    }
  });
});

it('keys for another algorithm than ALGORITHMS: → not ready, with both algorithms', async () => {
  const service = await open('a', await openProvider(), { ALGORITHMS: 'ES256' });
  await service.findLog(({ event }) => event === 'keys_fetched');
  const seen = async (): Promise<unknown> => (await send(service.adminUrl ?? '', '/readyz')).json;
  await expect.poll(seen, { timeout: 10_000 }).toMatchObject({
    ready: false,
    checks: { keys: expect.stringMatching(/^none: the published keys are for RS256.*, and ES256 is enabled$/) },
  });
});
