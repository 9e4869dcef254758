import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startForwardProxy } from '../support/forward-proxy.ts';
import { type Answer, send } from '../support/http-client.ts';
import { needs } from '../support/programs.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { bearer, findLine, findVariant, startInVain, startVariant, variants } from '../support/variant-service.ts';

const running: ServiceProcess[] = [];
const providers: TestProvider[] = [];

afterAll(async () => {
  await Promise.all(running.map((service) => service.stop()));
  await Promise.all(providers.map((provider) => provider.close()));
});

async function openProvider(isTrusted = true): Promise<TestProvider> {
  const provider = await startTestProvider({ isTrusted });
  providers.push(provider);
  return provider;
}

/** Two start at a time: with more, the provider's own answers would come too late for the three seconds of a fetch. */
const starting: Promise<unknown>[] = [];

async function open(
  name: 'a' | 'b',
  provider: Pick<TestProvider, 'domain' | 'audience' | 'caFile'>,
  environment: Readonly<Record<string, string>> = {},
): Promise<ServiceProcess> {
  const before = starting.at(-2) ?? Promise.resolve();
  const started = before.catch(() => undefined).then(() => startVariant(findVariant(name), provider, environment));
  starting.push(started);
  const service = await started;
  running.push(service);
  return service;
}

function get({ url }: ServiceProcess, token?: string): Promise<Answer> {
  return send(url, '/api/private', token === undefined ? {} : { headers: bearer(token) });
}

const readiness = ({ adminUrl = '' }: ServiceProcess): Promise<Answer> => send(adminUrl, '/readyz');

/** Asks again until the status is as wanted; the test's own timeout ends it otherwise. */
async function until(status: number, ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.status === status) return answer;
    await sleep(50);
  }
}

/** What is begun first, because a refresh can be forced only ten seconds after the last attempt (docs/behaviour.md §4). */
interface Early {
  readonly provider: TestProvider;
  readonly service: ServiceProcess;
}

async function begin(name: 'a' | 'b'): Promise<Early> {
  const provider = await openProvider();
  const service = await open(name, provider);
  await service.findLog(({ event }) => event === 'keys_fetched');
  return { provider, service };
}

const throttle = 10_200;
const early = new Map<string, Early>();
let throttleIsOver: Promise<void>;

beforeAll(async () => {
  const names = ['unknown', 'rotated', 'withdrawn', 'down'];
  await Promise.all(names.map(async (name) => early.set(name, await begin('a'))));
  throttleIsOver = sleep(throttle);
});

async function takeEarly(name: string): Promise<Early> {
  await throttleIsOver;
  const pair = early.get(name);
  if (pair === undefined) throw new Error('There is no such pair.');
  return pair;
}

type Fault = readonly [
  title: string,
  why: RegExp,
  harm: (provider: TestProvider) => Promise<void> | void,
  mend: (provider: TestProvider) => Promise<void> | void,
];

const faults: readonly Fault[] = [
  ['that is down', /accepts no connection/, (provider) => provider.down(), (provider) => provider.up()],
  ...(
    [
      ['hang', /in time/],
      ['status_500', /provider fails\. \(500\)/],
      ['huge', /too large/],
      ['redirect', /redirect/],
      ['wrong_issuer', /names another issuer/],
      ['http_jwks_uri', /no jwks_uri that is an https URL/],
    ] as const
  ).map(
    ([fault, why]): Fault => [
      `of fault ${fault}`,
      why,
      (provider) => provider.inject(fault),
      (provider) => provider.mend(),
    ],
  ),
];

describe.concurrent('a provider at the start', { timeout: 40_000 }, () => {
  it.each(faults)('%s → A starts, says why it is not ready, and recovers; B exits 69', async (_, why, harm, mend) => {
    const provider = await openProvider();
    await harm(provider);
    const inVain = startInVain(open('b', provider));
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

    const { end, stderr } = await inVain;
    expect(end).toEqual({ code: 69, signal: null });
    expect(stderr).toMatch(why);
    expect(stderr).toMatch(/^portcullis: the keys of https:\/\/localhost:\d+\/ could not be loaded.*\n$/);

    await mend(provider);
    expect((await until(200, () => get(service, token))).status).toBe(200);
    expect((await until(200, () => readiness(service))).json).toEqual({ ready: true, checks: { keys: 'ok' } });
    expect(provider.requests('/elsewhere')).toBe(0);
  });

  it('discovery alone down → A takes the well-known key set, B exits 69', async () => {
    const provider = await openProvider();
    provider.inject('not_found', 'discovery');
    const inVain = startInVain(open('b', provider));
    const service = await open('a', provider);
    expect((await get(service, await provider.sign())).status).toBe(200);
    expect((await inVain).end.code).toBe(69);
  });

  it('untrusted certificate → A is not ready and says so, B exits 69', async () => {
    const provider = await openProvider();
    const strange = await openProvider(false);
    const untrusted = { ...provider, audience: provider.audience, domain: provider.domain, caFile: strange.caFile };
    const inVain = startInVain(open('b', untrusted));
    const service = await open('a', untrusted);
    expect((await get(service, await provider.sign())).status).toBe(503);
    expect((await readiness(service)).body).toMatch(/certificate/);
    expect((await inVain).stderr).toMatch(/certificate/);
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

describe.concurrent('variant B', { timeout: 40_000 }, () => {
  it('keys are loaded once → no further request, whatever comes', async () => {
    const { provider, service } = await begin('b');
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

describe.concurrent('a domain written with https://', { timeout: 40_000 }, () => {
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
      expect(`${JSON.stringify(through.logs)}${through.stderr}`).not.toContain('proxy-password');
    } finally {
      await proxy.close();
    }
  });

  it('that refuses the credentials → A says it cannot reach the provider, without the password', async () => {
    const provider = await openProvider();
    const proxy = await startForwardProxy({ port: provider.port, credentials: { user: 'a', password: 'right' } });
    try {
      const service = await open('a', provider, { HTTPS_PROXY: proxy.url.replace('right', 'wrong-password') });
      expect((await get(service, await provider.sign())).status).toBe(503);
      expect((await readiness(service)).status).toBe(503);
      expect(`${JSON.stringify(service.logs)}${service.stderr}`).not.toContain('wrong-password');
    } finally {
      await proxy.close();
    }
  });
});

/** Sends a request from another loopback address, and returns its status. */
async function getFrom(localAddress: string, { port }: ServiceProcess, token: string): Promise<number | undefined> {
  const headers = { authorization: `Bearer ${token}` };
  const outgoing = request({ host: '127.0.0.1', localAddress, port, path: '/api/private', headers, agent: false });
  const [incoming] = (await once(outgoing.end(), 'response')) as [IncomingMessage]; // the argument of this event
  await once(incoming.resume(), 'end');
  return incoming.statusCode;
}

describe.concurrent('a provider later on', { timeout: 40_000 }, () => {
  it('200 unknown keys at once → one refresh for one client, three for several, 401 for all', async () => {
    const { provider, service } = await takeEarly('unknown');
    const [discoveries, keySets] = [provider.requests('discovery'), provider.requests('jwks')];
    const more = () => [provider.requests('discovery') - discoveries, provider.requests('jwks') - keySets];
    const ask = async (kid: string) => get(service, await provider.sign({}, { header: { kid } }));
    const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => ask(`unknown-${index}`)));
    for (const answer of answers) {
      expect(answer.status).toBe(401);
      expect((await findLine(service, answer))['reason']).toBe('unknown_kid');
    }
    for (let i = 0; i < 10; i++) expect((await ask(`later-${i}`)).status).toBe(401);
    expect(more()).toEqual([1, 1]);
    // The key set allows three at once; one more comes only after 10 s.
    for (let i = 2; i < 7; i++) {
      const token = await provider.sign({}, { header: { kid: `of-client-${i}` } });
      expect(await getFrom(`127.0.0.${i}`, service, token)).toBe(401);
    }
    expect(more()).toEqual([3, 3]);
    expect((await get(service, await provider.sign())).status).toBe(200);
  });

  it('new key → accepted after one refresh, the old one goes on', async () => {
    const { provider, service } = await takeEarly('rotated');
    const old = await provider.sign();
    const before = provider.requests('jwks');
    await provider.rotate();
    const answers = await Promise.all(Array.from({ length: 20 }, async () => get(service, await provider.sign())));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(provider.requests('jwks')).toBe(before + 1);
    expect((await get(service, old)).status).toBe(200);
    expect(provider.requests('jwks')).toBe(before + 1);
  });

  it('withdrawn key → refused once the refresh has landed, a token that was accepted before too', async () => {
    const { provider, service } = await takeEarly('withdrawn');
    const old = await provider.sign();
    expect((await get(service, old)).status).toBe(200);
    const before = provider.requests('jwks');
    const { kid } = provider;
    await provider.rotate();
    provider.withdraw(kid);
    expect((await get(service, old)).status).toBe(200);
    expect((await get(service, await provider.sign())).status).toBe(200);
    const refused = await get(service, old);
    expect(refused.status).toBe(401);
    expect((await findLine(service, refused))['reason']).toBe('unknown_kid');
    // The new key has forced a refresh; within 10 s the withdrawn key forces none for the same client.
    expect(provider.requests('jwks')).toBe(before + 1);
  });

  it('goes down → valid tokens still 200, unknown keys 401, ready', async () => {
    const { provider, service } = await takeEarly('down');
    await provider.down();
    expect((await get(service, await provider.sign())).status).toBe(200);
    expect((await get(service, await provider.sign({}, { header: { kid: 'unknown' } }))).status).toBe(401);
    await service.findLog(({ event }) => event === 'keys_fetch_failed');
    expect((await get(service, await provider.sign())).status).toBe(200);
    expect((await readiness(service)).status).toBe(200);
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
