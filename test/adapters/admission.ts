import { afterAll, beforeAll, expect, it } from 'vitest';
import { send } from '../support/http-client.ts';
import type { Running, Start } from './frameworks.ts';
import { client, issuer } from './issuer.ts';
import { handlerMessage, nonces, now, prefix } from './scene.ts';

const scope = 'read:messages write:messages';
const bearer = () => ['Authorization', issuer.headers({ sub: 'alice', scope }).authorization];

function dpop(url: string, nonce?: string): readonly string[] {
  const { authorization, dpop: proof } = client.headers({ url, scope, nonce });
  return ['Authorization', authorization, 'DPoP', proof];
}

/** The cases of requests that are let in; registers them with the test runner. */
export function describeAdmission(start: Start): void {
  let running: Running;
  beforeAll(async () => {
    running = await start(issuer);
  });
  afterAll(() => running.close());

  const call = (path: string, headers: readonly string[], method = 'GET') =>
    send(running.origin, path, { headers, method });

  it.each(['', prefix])('Bearer below "%s" → admitted, with the claims', async (base) => {
    const answer = await call(`${base}/usual`, bearer());
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({ sub: 'alice', scheme: 'Bearer' });
    expect(answer.headers.has('dpop-nonce')).toBe(false);
  });

  it.each(['', prefix])('DPoP below "%s", a proof for the requested URL → admitted', async (base) => {
    const path = `${base}/usual`;
    const answer = await call(path, dpop(`${running.origin}${path}`));
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({ sub: 'test-subject', scheme: 'DPoP' });
  });

  it('below a prefix, a proof for the URL without it → 401 invalid_dpop_proof', async () => {
    const answer = await call(`${prefix}/usual`, dpop(`${running.origin}/usual`));
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toContain('error="invalid_dpop_proof"');
  });

  it('keys that must be awaited → admitted', async () => {
    const answer = await call('/slow', bearer());
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({ sub: 'alice', scheme: 'Bearer' });
  });

  it('behind a trusted proxy, a proof for the URL of the proxy → admitted', async () => {
    const forwarded = ['X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'api.example', 'X-Forwarded-Prefix', '/v2'];
    const answer = await call('/behindProxy', [...forwarded, ...dpop('https://api.example/v2/behindProxy')]);
    expect(answer.status).toBe(200);
  });

  it('a nonce about to expire → the response has a new one', async () => {
    const path = '/withNonces';
    const step = 120;
    const answer = await call(path, dpop(`${running.origin}${path}`, nonces.issue(now() - step)));
    expect(answer.status).toBe(200);
    expect(answer.headers.get('dpop-nonce')).toBe(nonces.issue(now()));
  });

  it('HEAD → admitted like GET', async () => {
    const answer = await call('/usual', bearer(), 'HEAD');
    expect(answer).toMatchObject({ status: 200, body: '' });
  });

  it.each(['/throws', '/rejects', '/slow-throws', `${prefix}/throws`])(
    '%s: an error of a handler gets the framework’s response, and is not a refusal',
    async (path) => {
      const answer = await call(path, bearer());
      expect(answer).toMatchObject({ status: 500, body: handlerMessage });
      expect(answer.headers.has('www-authenticate')).toBe(false);
      expect(await running.refused()).toHaveLength(1); // the proof of another URL, above
    },
  );
}
