import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failures } from '../../src/core/failures.ts';
import { type RequestOptions, send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { bearer, findLine, openVariant, variants } from '../support/variant-service.ts';

const provider = await useTestProvider();

/** Stands in every bad token, so that an echo of any of them is found. */
const canary = 'canary-5d41402a';

const now = (): number => Math.floor(Date.now() / 1000);
const statuses = {
  a: { scope: 403, none: 401, past: 200, future: 401 },
  b: { scope: 401, none: 200, past: 401, future: 200 },
};

describe.each(variants)('variant $name', (variant) => {
  const { message } = variant;
  const expected = statuses[variant.name];
  let service: OpenedService;
  const sent: string[] = [];
  const get = (path: string, options?: RequestOptions) => send(service.url, path, options);
  const getWith = (path: string, token: string) => {
    sent.push(token);
    return get(path, { headers: bearer(token) });
  };

  beforeAll(async () => {
    service = await openVariant(variant, provider);
  });
  afterAll(() => service.stop());

  it('public, no token → 200', async () => {
    const { status, json } = await get('/api/public');
    expect(status).toBe(200);
    expect(json).toEqual({ [message]: expect.stringMatching(/^Public endpoint/) });
  });

  it.each([
    ['garbage as Bearer', bearer(canary)],
    ['a scheme that is not known', ['Authorization', 'Basic Y2FuYXJ5OmNhbmFyeQ==']],
    ['two Authorization headers', [...bearer('one'), ...bearer('two')]],
    ['DPoP without a proof', ['Authorization', `DPoP ${canary}`]],
    ['Bearer with a proof', [...bearer(canary), 'DPoP', canary]],
    ['an empty header', ['Authorization', '']],
  ])('public, %s → 200', async (_, headers) => {
    const { status, body } = await get('/api/public', { headers });
    expect(status).toBe(200);
    expect(body).toBe((await get('/api/public')).body);
  });

  it.each(variant.protectedPaths)('%s, no token → 401 missing_credentials', async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(401);
    expect(answer.json).toEqual(variant.refusal('unauthorized', 'An access token is required.'));
    expect(await findLine(service, answer)).toMatchObject({ reason: 'missing_credentials', route: path, status: 401 });
  });

  it.each(variant.protectedPaths)('%s, valid token → 200', async (path) =>
    expect((await getWith(path, await provider.sign())).status).toBe(200),
  );

  it.each(['BEARER', 'bearer', 'Bearer '])('private, valid token under the scheme "%s" → 200', async (scheme) => {
    const headers = ['Authorization', `${scheme} ${await provider.sign()}`];
    expect((await get('/api/private', { headers })).status).toBe(200);
  });

  it.each([
    ['private-scoped', 'another scope', () => ({ scope: 'write:messages' }), expected.scope, 'insufficient_scope'],
    ['private-scoped', 'the scope among others', () => ({ scope: 'write:messages read:messages' }), 200, undefined],
    ['private', 'no scope', () => ({ scope: undefined }), 200, undefined],
    ['private', 'no sub', () => ({ sub: undefined }), expected.none, 'malformed_sub'],
    ['private', 'expired a second ago', () => ({ exp: now() - 1 }), expected.past, 'expired'],
    ['private', 'valid in a minute', () => ({ nbf: now() + 60 }), expected.future, 'not_yet_valid'],
    ['private', 'issued in a minute', () => ({ iat: now() + 60 }), expected.future, 'issued_in_future'],
    ['private', 'another audience', () => ({ sub: canary, aud: `https://${canary}/` }), 401, 'invalid_audience'],
  ] as const)('%s, %s → %4$s', async (path, _title, claims, status, reason) => {
    const token = await provider.sign(claims());
    const answer = await getWith(`/api/${path}`, token);
    expect(answer.status).toBe(status);
    if (status === 200 || reason === undefined) return;
    const { error = '', description } = failures[reason];
    expect(answer.json).toEqual(variant.refusal(error ?? '', description));
    const line = await findLine(service, answer);
    expect(line['reason']).toBe(reason);
    // Only what was compared is told, and only to the operator.
    for (const text of [answer.text, JSON.stringify({ ...line, received: undefined })]) {
      for (const part of [canary, ...token.split('.')]) expect(text).not.toContain(part);
    }
  });

  it('any input → in no line of the log, except the claim that was compared', async () => {
    const last = await get('/api/private', { headers: ['Authorization', `Basic ${canary}`, 'Cookie', canary] });
    await findLine(service, last);
    const lines = service.logs.map((line) => ({ ...line, received: undefined }));
    const log = JSON.stringify(lines);
    expect(service.logs.length).toBeGreaterThan(sent.length);
    expect(log).not.toContain(canary);
    for (const token of sent) expect(log).not.toContain(token);
  });
});
