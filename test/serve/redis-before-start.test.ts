import { describe, expect, it, onTestFinished } from 'vitest';
import { createDpopClient } from '../support/dpop-client.ts';
import { openService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { startTestRedis } from '../support/redis.ts';
import { startTestProvider } from '../support/test-provider.ts';

describe('FLUSHALL under two instances', needs('redis-server'), () => {
  it.each([
    ['with a nonce secret → 401 with a nonce that both understand', { DPOP_NONCE_SECRET: 'n'.repeat(32) }, 401],
    ['without one → 503, as no instance knows the nonces of the other', {}, 503],
  ])('%s', async (_name, environment, status) => {
    const [provider, redis] = await Promise.all([startTestProvider(), startTestRedis()]);
    onTestFinished(async () => void (await Promise.all([provider.close(), redis.stop()])));
    const start = async () => {
      const service = await openService({
        environment: {
          IDP_DOMAIN: provider.domain,
          IDP_AUDIENCE: provider.audience,
          NODE_EXTRA_CA_CERTS: provider.caFile,
          REPLAY_STORE: redis.url,
          REPLAY_TIMEOUT: '2000',
          ...environment,
        },
      });
      onTestFinished(() => void service.stop());
      return `${service.url}/api/private`;
    };
    const [one, two] = await Promise.all([start(), start()]);
    const client = createDpopClient();
    onTestFinished(() => client.close());
    const token = await provider.sign({ cnf: { jkt: client.jkt } });
    const send = (url: string, target: { readonly nonce?: string; readonly iat?: number } = {}) =>
      client.call(url, { headers: client.headers(token, { url, ...target }) });
    // A new Redis cannot tell either what was used before.
    const iat = Math.floor(Date.now() / 1000) + 5;
    while ((await send(one, { iat })).status !== 200 || (await send(two, { iat })).status !== 200);

    await redis.command('FLUSHALL');
    const late = Math.floor(Date.now() / 1000) - 120;
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
