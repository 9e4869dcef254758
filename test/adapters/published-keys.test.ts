import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { starts } from '../runtimes/starts.ts';
import { send } from '../support/http-client.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import type { Running } from './frameworks.ts';
import { now } from './scene.ts';

// Keys are fetched below all frameworks: one of them tells enough.
describe.each(starts.filter(([name]) => name === 'fetch'))('keys, under %s', (_name, start) => {
  let provider: TestProvider;
  let running: Running;
  beforeAll(async () => {
    provider = await startTestProvider();
    const { issuer, audience, ca } = provider;
    running = await start({ issuer, audience, ca });
  });
  afterAll(async () => {
    await running?.close();
    await provider?.close();
  });

  const bearer = async (kid?: string) => {
    const token = await provider.sign({ iat: now(), exp: now() + 3600 }, kid === undefined ? {} : { header: { kid } });
    return ['Authorization', `Bearer ${token}`];
  };
  // Each route has its own resource server and key set.
  const call = async (path: string, headers: readonly string[]) => send(running.origin, path, { headers });

  it('first tokens, concurrent → admitted after one fetch', async () => {
    const headers = await bearer();
    const answers = await Promise.all(Array.from({ length: 5 }, () => call('/usual', headers)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(provider.requests('jwks')).toBe(1);
  });

  it('a later token → admitted without a fetch', async () => {
    const before = provider.requests('jwks');
    expect((await call('/usual', await bearer())).status).toBe(200);
    expect(provider.requests('jwks')).toBe(before);
  });

  it('a key that was never published → 401 invalid_token', async () => {
    const answer = await call('/usual', await bearer('unknown'));
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toContain('error="invalid_token"');
  });

  it('the client whose token began a fetch disconnects, and the issuer hangs → later tokens are admitted', async () => {
    provider.inject('hang');
    const [name = '', value = ''] = await bearer();
    const before = provider.requests('discovery');
    const gone = request(`${running.origin}/ownBodies`, { headers: { [name]: value }, agent: false });
    gone.on('error', () => undefined).end();
    while (provider.requests('discovery') === before) await pause();
    gone.destroy();
    provider.mend();
    const statuses = new Set<number>();
    while (!statuses.has(200)) {
      statuses.add((await call('/ownBodies', await bearer())).status);
      await pause();
    }
    statuses.delete(503); // until the fetch has failed, and for as long as another is not due
    expect([...statuses]).toEqual([200]);
  });
});

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}
