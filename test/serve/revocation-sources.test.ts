import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { send } from '../support/http-client.ts';
import { sendLogout } from '../support/logout.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { startTestRedis } from '../support/redis.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { startTransmitter } from '../support/transmitter.ts';

const provider = await useTestProvider();
const folder = useFolder();
const key = 'k'.repeat(40);
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  await writeFile(join(folder, 'key'), key);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(environment: Readonly<Record<string, string>>): Promise<OpenedService> {
  const { issuer: ISSUER, audience: IDP_AUDIENCE, caFile: NODE_EXTRA_CA_CERTS } = provider;
  const service = await openService({ environment: { ISSUER, IDP_AUDIENCE, NODE_EXTRA_CA_CERTS, ...environment } });
  closers.push(() => service.stop());
  return service;
}
const now = (): number => Math.floor(Date.now() / 1000);
const status = async ({ url }: OpenedService, token: string): Promise<number> =>
  (await send(url, '/api/private', { headers: ['authorization', `Bearer ${token}`] })).status;
const ready = async ({ adminUrl = '' }: OpenedService) => {
  const { status: code, json } = await send(adminUrl, '/readyz');
  return {
    code,
    ...(json as { readonly degraded?: readonly string[]; readonly checks: Readonly<Record<string, string>> }),
  };
};

async function writeStreams(transmitter: string): Promise<string> {
  const file = join(folder, 'streams.json');
  const stream = { transmitter, audience: 'a', authorizationFile: join(folder, 'key') };
  await writeFile(file, JSON.stringify({ streams: { idp: stream } }));
  return file;
}

it.each<[string, () => Promise<Readonly<Record<string, string>>>]>([
  ['LOGOUT_CLIENTS', async () => ({ LOGOUT_CLIENTS: 'app' })],
  ['SHARED_SIGNALS', async () => ({ SHARED_SIGNALS: await writeStreams('https://127.0.0.1:9') })],
  ['ADMIN_KEY_FILE', async () => ({ ADMIN_KEY_FILE: join(folder, 'key') })],
])('%s alone → a token of more than a day is refused, and one of a day is admitted', async (_name, settings) => {
  const service = await start(await settings());
  await service.findLog(({ event }) => event === 'keys_fetched');
  const iat = now() - 5;
  expect(await status(service, await provider.sign({ iat, exp: iat + 86_400 }))).toBe(200);
  expect(await status(service, await provider.sign({ iat, exp: iat + 86_401 }))).toBe(401);
  await service.findLog(({ reason }) => reason === 'token_lifetime_too_long');
});

it('a transmitter that is down → the service starts, ready and degraded; then the stream opens', async () => {
  const transmitter = await startTransmitter();
  closers.push(() => transmitter.stop());
  transmitter.behaviour.status = 503;
  const SHARED_SIGNALS = await writeStreams(transmitter.url);
  const service = await start({ SHARED_SIGNALS, NODE_EXTRA_CA_CERTS: transmitter.caFile });
  await service.findLog(({ event }) => event === 'signals_stream_failed');
  await vi.waitFor(async () => expect((await ready(service)).degraded).toEqual(['stream idp']), { timeout: 20_000 });
  delete transmitter.behaviour.status;
  await service.findLog(({ event }) => event === 'signals_stream_opened');
  await vi.waitFor(async () => expect((await ready(service)).degraded ?? []).toEqual([]), { timeout: 10_000 });
  expect(await service.stop()).toBe(0);
});

describe('1,000,000 cutoffs', needs('redis-server'), () => {
  it('the next → 400 for logout, 503 by hand, one error line, a metric; stored ones apply', async () => {
    const redis = await startTestRedis();
    closers.push(() => redis.stop());
    const client = createClient({ url: redis.url, socket: { timeout: 60_000 } } as object);
    client.on('error', () => undefined);
    await client.connect();
    const prefix = 'portcullis:revocation:{all}:';
    const script = `for i = 1, 100000 do
      local name = '["' .. ARGV[1] .. '","sid","s' .. string.format('%d', ARGV[2] * 100000 + i) .. '"]'
      redis.call('HSET', KEYS[1], name, ARGV[3] .. ' ' .. ARGV[4])
      redis.call('ZADD', KEYS[2], ARGV[4], name)
    end`;
    for (let part = 0; part < 10; part++) {
      await client.eval(script, {
        keys: [`${prefix}records`, `${prefix}untils`],
        arguments: [provider.issuer, String(part), String(now() * 16_000), String(now() + 80_000)],
      });
    }
    await client.close();
    const service = await start({
      ...{ LOGOUT_CLIENTS: 'app', ADMIN_KEY_FILE: join(folder, 'key'), REVOCATION_STORE: redis.url },
    });
    await vi.waitFor(async () => expect((await ready(service)).code).toBe(200), { timeout: 100_000, interval: 200 });
    const [known, ended] = [await provider.sign({ sid: 's500000' }), await provider.sign({ sid: 'new' })];
    expect([await status(service, known), await status(service, ended)]).toEqual([401, 200]);
    const logOut = (sid: string) => sendLogout(provider, service, sid);
    expect([await logOut('new'), await logOut('newer')]).toEqual([400, 400]);
    const revoked = await fetch(`${service.adminUrl}/revocations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"sub":"ann"}',
    });
    expect(revoked.status).toBe(503);
    // A known cutoff takes no place.
    expect(await logOut('s500000')).toBe(200);
    await service.findLog(({ event, level }) => event === 'revocations_full' && level === 'error');
    expect(service.logs.filter(({ event }) => event === 'revocations_full')).toHaveLength(1);
    const metrics = (await send(String(service.adminUrl), '/metrics')).body;
    expect(metrics).toMatch(/^portcullis_revocations_rejected_total 3$/m);
    expect(metrics).toMatch(/^portcullis_revocation_cutoffs 1000000$/m);
    expect([await status(service, known), await status(service, ended)]).toEqual([401, 200]);
  });
});
