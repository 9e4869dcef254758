import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RequestOptions, send } from '../support/http-client.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { bearer, findLine, startVariant, variants } from '../support/variant-service.ts';

let provider: TestProvider;

beforeAll(async () => {
  provider = await startTestProvider();
});
afterAll(() => provider.close());

/** Stands in every bad token, so that an echo of any of them is found. */
const canary = 'canary-5d41402a';

const scopes = [
  ['no scope', undefined],
  ['an empty scope', ''],
  ['another scope', 'write:messages'],
  ['a scope that goes on', 'read:messages:all'],
  ['a scope that goes on with a letter', 'read:messagess'],
  ['the beginning of the scope', 'read:message'],
  ['the scope in another case', 'Read:Messages'],
  ['the scope in capitals', 'READ:MESSAGES'],
  ['scopes joined with a comma', 'write:messages,read:messages'],
  ['scopes joined with a tab', 'write:messages\tread:messages'],
  ['scopes joined with a no-break space', 'write:messages\u00a0read:messages'],
  ['the scope in two pieces', 'read: messages'],
] as const;

const badTokens = [
  ['wrong audience', 'invalid_audience', () => provider.sign({ sub: canary, aud: `https://${canary}/` })],
  [
    'audience without its slash',
    'invalid_audience',
    () => provider.sign({ sub: canary, aud: 'https://api.example.test' }),
  ],
  ['wrong issuer', 'invalid_issuer', () => provider.sign({ sub: canary, iss: `https://${canary}/` })],
  ['issuer without its slash', 'invalid_issuer', () => provider.sign({ iss: provider.issuer.slice(0, -1) })],
  ['expired token', 'expired', () => provider.sign({ sub: canary, exp: Math.floor(Date.now() / 1000) - 60 })],
  ['garbage with dots', 'malformed_encoding', async () => `${canary}.~.~`],
  ['garbage without dots', 'opaque_token', async () => canary],
] as const;

describe.each(variants)('variant $name', (variant) => {
  const { message, insufficientScopeStatus } = variant;
  let service: ServiceProcess;
  const sent: string[] = [];
  const get = (path: string, options?: RequestOptions) => send(service.url, path, options);
  const getWith = (path: string, token: string) => {
    sent.push(token);
    return get(path, { headers: bearer(token) });
  };

  beforeAll(async () => {
    service = await startVariant(variant, provider);
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

  it.each(variant.protectedPaths)('%s, valid token → 200', async (path) => {
    expect((await getWith(path, await provider.sign())).status).toBe(200);
  });

  it.each(['BEARER', 'bearer', 'Bearer '])('private, valid token under the scheme "%s" → 200', async (scheme) => {
    const headers = ['Authorization', `${scheme} ${await provider.sign()}`];
    expect((await get('/api/private', { headers })).status).toBe(200);
  });

  it.each(scopes)('scoped, %s → insufficient_scope', async (_, scope) => {
    const answer = await getWith('/api/private-scoped', await provider.sign({ scope }));
    expect(answer.status).toBe(insufficientScopeStatus);
    expect(answer.json).toEqual(variant.refusal('insufficient_scope', 'The access token lacks a required scope.'));
    expect((await findLine(service, answer))['reason']).toBe('insufficient_scope');
  });

  it.each(scopes)('private, %s → 200', async (_, scope) => {
    expect((await getWith('/api/private', await provider.sign({ scope }))).status).toBe(200);
  });

  it('scoped, the permission instead of the scope → insufficient_scope', async () => {
    const token = await provider.sign({ scope: undefined, permissions: ['read:messages'] });
    expect((await getWith('/api/private-scoped', token)).status).toBe(insufficientScopeStatus);
  });

  it.each(['read:messages', 'write:messages read:messages', 'read:messages openid profile', 'a  read:messages'])(
    'scoped, scope "%s" → 200',
    async (scope) => {
      expect((await getWith('/api/private-scoped', await provider.sign({ scope }))).status).toBe(200);
    },
  );

  it('audience as one of a list → 200', async () => {
    const aud = ['https://other.example.test/', provider.audience];
    expect((await getWith('/api/private', await provider.sign({ aud }))).status).toBe(200);
  });

  it.each(badTokens)('%s → 401 %s, without any part of the token', async (_, reason, mint) => {
    const token = await mint();
    const answer = await getWith('/api/private', token);
    expect(answer.status).toBe(401);
    const line = await findLine(service, answer);
    expect(line['reason']).toBe(reason);
    // Only what was compared is told, and only to the operator.
    for (const text of [answer.text, JSON.stringify({ ...line, received: undefined })]) {
      expect(text).not.toContain(canary);
      for (const part of token.split('.').filter((part) => part.length > 8)) expect(text).not.toContain(part);
    }
  });

  it('any input → in no line of the log, except the claim that was compared', async () => {
    const last = await get('/api/private', { headers: ['Authorization', `Basic ${canary}`, 'Cookie', canary] });
    await findLine(service, last);
    const lines = service.logs.map((line) => ({ ...line, received: undefined }));
    const log = `${JSON.stringify(lines)}${service.stderr}`;
    expect(service.logs.length).toBeGreaterThan(sent.length);
    expect(log).not.toContain(canary);
    for (const token of sent) expect(log).not.toContain(token);
  });
});
