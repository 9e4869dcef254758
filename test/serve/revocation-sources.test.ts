import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { sendLogout } from '../support/logout.ts';
import type { OpenedService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { askAdmin, now, startRedis, statusOf as status, useSessions } from '../support/sessions.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { startTransmitter } from '../support/transmitter.ts';

const provider = await useTestProvider();
const { open } = useSessions(provider);
const folder = useFolder();
const key = 'k'.repeat(40);

beforeAll(() => writeFile(join(folder, 'key'), key));

const degraded = async (service: OpenedService) =>
  ((await askAdmin(service, '/readyz')).json as { readonly degraded?: readonly string[] }).degraded ?? [];

async function writeStreams(transmitter: string): Promise<string> {
  const file = join(folder, 'streams.json');
  const stream = { transmitter, audience: 'a', authorizationFile: join(folder, 'key') };
  await writeFile(file, JSON.stringify({ streams: { idp: stream } }));
  return file;
}

it.each<[string, number, () => Promise<Readonly<Record<string, string>>>]>([
  ['LOGOUT_CLIENTS', 86_400, async () => ({ LOGOUT_CLIENTS: 'app' })],
  ['SHARED_SIGNALS', 86_400, async () => ({ SHARED_SIGNALS: await writeStreams('https://127.0.0.1:9') })],
  ['ADMIN_KEY_FILE', 86_400, async () => ({ ADMIN_KEY_FILE: join(folder, 'key') })],
  ['MAX_TOKEN_LIFETIME', 600, async () => ({ LOGOUT_CLIENTS: 'app', MAX_TOKEN_LIFETIME: '600' })],
])('%s → a token of more than %i s is refused, and one of these is admitted', async (_name, longest, settings) => {
  const service = await open(await settings());
  await service.findLog(({ event }) => event === 'keys_fetched');
  const iat = now() - 5;
  expect(await status(service, await provider.sign({ iat, exp: iat + longest }))).toBe(200);
  expect(await status(service, await provider.sign({ iat, exp: iat + longest + 1 }))).toBe(401);
  await service.findLog(({ reason }) => reason === 'token_lifetime_too_long');
});

it('a transmitter that is down → the service starts, ready and degraded; then the stream opens', async () => {
  const transmitter = await startTransmitter();
  onTestFinished(() => transmitter.stop());
  transmitter.behaviour.status = 503;
  const SHARED_SIGNALS = await writeStreams(transmitter.url);
  const service = await open({ SHARED_SIGNALS, NODE_EXTRA_CA_CERTS: transmitter.caFile });
  await service.findLog(({ event }) => event === 'signals_stream_failed');
  await vi.waitFor(async () => expect(await degraded(service)).toEqual(['stream idp']), { timeout: 20_000 });
  delete transmitter.behaviour.status;
  await service.findLog(({ event }) => event === 'signals_stream_opened');
  await vi.waitFor(async () => expect(await degraded(service)).toEqual([]), { timeout: 10_000 });
  expect(await service.stop()).toBe(0);
});

describe('1,000,000 cutoffs', needs('redis-server'), () => {
  it('the next → 400 for logout, 503 by hand, one error line, a metric; stored ones apply', async () => {
    const redis = await startRedis();
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
    const service = await open({
      ...{ LOGOUT_CLIENTS: 'app', ADMIN_KEY_FILE: join(folder, 'key'), REVOCATION_STORE: redis.url },
    });
    await vi.waitFor(async () => expect((await askAdmin(service, '/readyz')).status).toBe(200), {
      timeout: 100_000,
      interval: 200,
    });
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
    const { body: metrics } = await askAdmin(service, '/metrics');
    expect(metrics).toMatch(/^portcullis_revocations_rejected_total 3$/m);
    expect(metrics).toMatch(/^portcullis_revocation_cutoffs 1000000$/m);
    expect([await status(service, known), await status(service, ended)]).toEqual([401, 200]);
  });
});
