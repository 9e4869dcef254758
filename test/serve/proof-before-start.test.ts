import { describe, expect, it, onTestFinished } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { createDpopClient } from '../support/dpop-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { startTestRedis } from '../support/redis.ts';
import { startTestProvider } from '../support/test-provider.ts';
import { findVariant, openVariant } from '../support/variant-service.ts';

/** Starts a provider and a client with a bound token. `start` opens a service before them. */
async function open() {
  const provider = await startTestProvider();
  const client = createDpopClient();
  onTestFinished(async () => void (await Promise.all([provider.close(), client.close()])));
  const start = async (environment: Readonly<Record<string, string>>): Promise<OpenedService> => {
    const service = await openVariant(findVariant('a'), provider, environment);
    onTestFinished(() => void service.stop());
    return service;
  };
  const token = await provider.sign({ cnf: { jkt: client.jkt } });
  const send = (url: string, target: { readonly nonce?: string; readonly iat?: number } = {}) =>
    client.call(url, { headers: client.headers(token, { url, ...target }) });
  return { start, client, token, send };
}
const ago = (seconds: number): number => Math.floor(Date.now() / 1000) - seconds;

it.each([
  ['one process', {}],
  ['one process that demands nonces', { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 'n'.repeat(32) }],
])(
  'a proof that was used before a restart: %s → 401 with a nonce; a new proof with it → 200',
  async (_how, settings) => {
    const { start, client, token, send } = await open();
    const PORT = String(await findFreePort());
    const url = `http://127.0.0.1:${PORT}/api/private`;
    const service = await start({ PORT, ...settings });
    // The first call may be made in the second of the start: it learns a nonce then.
    const { nonce } = await send(url);
    const used = client.headers(token, { url, ...(nonce !== undefined && { nonce }) });
    expect((await client.call(url, { headers: used })).status).toBe(200);
    await service.stop();

    const restarted = await start({ PORT, ...settings });
    const answer = await client.call(url, { headers: used });
    expect(answer.status).toBe(401);
    expect(answer.challenge).toContain('error="use_dpop_nonce"');
    expect((await restarted.findLog(({ id }) => id === answer.id))['reason']).toBe('proof_before_start');
    const late = client.headers(token, { url, iat: ago(120), nonce: answer.nonce ?? '' });
    expect((await client.call(url, { headers: late })).status).toBe(200);
    expect((await client.call(url, { headers: late })).status).toBe(401);
  },
);

describe('FLUSHALL under two instances', needs('redis-server'), () => {
  it.each([
    ['with a nonce secret → 401 with a nonce that both understand', { DPOP_NONCE_SECRET: 'n'.repeat(32) }, 401],
    ['without one → 503, as no instance knows the nonces of the other', {}, 503],
  ])('%s', async (_name, environment, status) => {
    const [{ start, send }, redis] = await Promise.all([open(), startTestRedis()]);
    onTestFinished(() => redis.stop());
    const settings = { REPLAY_STORE: redis.url, REPLAY_TIMEOUT: '2000', ...environment };
    const [one = '', two = ''] = (await Promise.all([start(settings), start(settings)])).map(
      (service) => `${service.url}/api/private`,
    );
    // A new Redis cannot tell either what was used before.
    const iat = ago(-5);
    while ((await send(one, { iat })).status !== 200 || (await send(two, { iat })).status !== 200);

    await redis.command('FLUSHALL');
    const late = ago(120);
    const answer = await send(one, { iat: late });
    expect(answer.status).toBe(status);
    if (answer.nonce === undefined) {
      expect(answer.retryAfter).toBe('5');
      return;
    }
    expect((await send(two, { iat: late, nonce: answer.nonce })).status).toBe(200);
    expect((await send(one, { iat: late, nonce: answer.nonce })).status).toBe(200);
  });
});
