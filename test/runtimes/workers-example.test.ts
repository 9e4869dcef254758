import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestIssuer, type ListeningIssuer } from '../../src/testing/index.ts';
import type { Launched } from './launch.ts';
import { createStarts, runtimeWords } from './starts.ts';

// Part of `npm run runtimes -- workerd` alone: on Node the file is started by examples/test/frameworks.test.ts.

let issuer: ListeningIssuer;
let launched: Launched | undefined;
const start = new Map(createStarts(runtimeWords ?? [])).get('fetch');
beforeAll(async () => {
  issuer = await createTestIssuer().listen();
  launched = await start?.({ issuer: issuer.issuer, audience: issuer.audience, ca: issuer.ca });
});
afterAll(async () => {
  await launched?.close();
  await issuer?.close();
});

describe('example of Workers', () => {
  const call = async (headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${launched?.example}/messages`, { headers });
    return [response.status, await response.json()];
  };

  it('open route → 200 without a token', async () =>
    expect(await (await fetch(`${launched?.example}/`)).text()).toBe('open to all'));

  it('a token with the scope → 200', async () => {
    const headers = issuer.headers({ sub: 'alice', scope: 'read:messages' });
    expect(await call(headers)).toEqual([200, { reader: 'alice' }]);
  });

  it('a bound token with its proof → 200, and once more → 401', async () => {
    const url = `${launched?.example}/messages`;
    const headers = { ...issuer.dpopClient().headers({ url, scope: 'read:messages' }) };
    expect(await call(headers)).toEqual([200, { reader: 'test-subject' }]);
    expect(await call(headers)).toMatchObject([401, { detail: { error: 'invalid_dpop_proof' } }]);
  });

  it('no token → 401, and a token without the scope → 403', async () => {
    expect(await call()).toMatchObject([401, { detail: { error: 'unauthorized' } }]);
    expect(await call(issuer.headers())).toMatchObject([403, { detail: { error: 'insufficient_scope' } }]);
  });
});
