import { describe, expect, it } from 'vitest';
import type { Endpoint } from '../../../src/server/variants/endpoints.ts';
import { type Variant, type VariantName, variants } from '../../../src/server/variants/variants.ts';

const names = Object.keys(variants) as VariantName[]; // the keys are the names
const settings = { customClaim: 'https://portcullis.example/claim' };

function findEndpoint({ endpoints }: Variant, path: string): Endpoint {
  const endpoint = endpoints.find((each) => each.path === path);
  if (endpoint === undefined) throw new Error(`no endpoint ${path}`);
  return endpoint;
}

function answer(variant: Variant, path: string, claims: Readonly<Record<string, unknown>> = {}): unknown {
  const endpoint = findEndpoint(variant, path);
  if (endpoint.access === 'open') return endpoint.body;
  const all = { iss: 'https://idp.example.test/', exp: 2, iat: 1, sub: 'user|1', ...claims };
  return JSON.parse(JSON.stringify(endpoint.answer(all, settings)));
}

describe('endpoints', () => {
  it.each([
    ['a', ['/api/public', '/api/private', '/api/private-scoped', '/api/profile', '/api/protected']],
    ['b', ['/api/public', '/api/private', '/api/private-scoped']],
  ] as const)('variant %s → %j', (name, paths) =>
    expect(variants[name].endpoints.map(({ path }) => path)).toEqual(paths),
  );

  it.each(names)('variant %s → one is open, one needs read:messages, the others any valid token', (name) => {
    for (const { path, access } of variants[name].endpoints) {
      const expected = path === '/api/public' ? 'open' : path.endsWith('scoped') ? { scopes: ['read:messages'] } : {};
      expect(access, path).toEqual(expected);
    }
  });

  it('variant A → says who the token speaks for', () => {
    const message = expect.stringMatching(/^[A-Z].*\.$/);
    expect(answer(variants.a, '/api/public')).toEqual({ message });
    expect(answer(variants.a, '/api/private')).toEqual({ message, user_id: 'user|1' });
    expect(answer(variants.a, '/api/private-scoped')).toEqual({ message, user_id: 'user|1' });
    expect(answer(variants.a, '/api/protected')).toEqual({ message });
  });

  it.each(['/api/public', '/api/private', '/api/private-scoped'])('variant B, %s → a message alone', (path) =>
    expect(answer(variants.b, path)).toEqual({ Message: expect.stringMatching(/^[A-Z].*\.$/) }),
  );

  it.each(names)('variant %s → each message says what the endpoint is and what access it needs', (name) => {
    const variant = variants[name];
    const texts = variant.endpoints
      .filter(({ path }) => path !== '/api/profile')
      .map(({ path }) => JSON.stringify(answer(variant, path)));
    expect(new Set(texts).size).toBe(texts.length);
    for (const text of texts) expect(text).toMatch(/endpoint: .*(?:access token|no access token)/i);
    expect(JSON.stringify(answer(variant, '/api/private-scoped'))).toContain('read:messages');
  });

  it.each([
    ['nothing optional', {}, { email: null, permissions: [], custom_claim: null }],
    [
      'everything',
      { email: 'a@example.test', permissions: ['read', 'write'], 'https://portcullis.example/claim': 'gold' },
      { email: 'a@example.test', permissions: ['read', 'write'], custom_claim: 'gold' },
    ],
    [
      'a custom claim with parts',
      { 'https://portcullis.example/claim': { a: [1] } },
      { email: null, permissions: [], custom_claim: { a: [1] } },
    ],
    [
      'a custom claim of null',
      { 'https://portcullis.example/claim': null },
      { email: null, permissions: [], custom_claim: null },
    ],
    [
      'foreign types',
      { email: 1, permissions: 'read', 'https://portcullis.example/other': 1 },
      { email: null, permissions: [], custom_claim: null },
    ],
    [
      'a mixed list of permissions',
      { email: ['a@example.test'], permissions: ['read', 1, null, ['x'], 'write'] },
      { email: null, permissions: ['read', 'write'], custom_claim: null },
    ],
  ])('profile of a token with %s', (_name, claims, profile) =>
    expect(answer(variants.a, '/api/profile', claims)).toEqual({ user_id: 'user|1', ...profile }),
  );

  it('a custom claim named like a member of every object → null where the token has none', () => {
    const endpoint = findEndpoint(variants.a, '/api/profile');
    if (endpoint.access === 'open') throw new Error('The profile must not be open.');
    const claims = { iss: 'https://idp.example.test/', exp: 2, iat: 1, sub: 'user|1' };
    expect(endpoint.answer(claims, { customClaim: 'constructor' })).toMatchObject({ custom_claim: null });
  });

  it.each(names)('variant %s → every response has exactly the members its schema requires', (name) => {
    for (const { path, schema } of variants[name].endpoints) {
      const body = answer(variants[name], path);
      expect(schema, path).toMatchObject({
        type: 'object',
        required: Object.keys(body as object), // every answer is an object
        additionalProperties: false,
      });
    }
  });
});

it('records: A and B differ as docs/behaviour.md has it', () => {
  const { endpoints: _a, ...a } = variants.a;
  const { endpoints: _b, ...b } = variants.b;
  expect(a).toEqual({
    names: { domain: 'IDP_DOMAIN', audience: 'IDP_AUDIENCE' },
    defaults: { dpopEnabled: true, errorBody: 'detail', clockTolerance: { exp: 5, nbf: 5 } },
    keyLoading: 'background',
    discoveryFallback: 'well-known',
    subject: 'required',
    challenge: 'full',
    insufficientScopeStatus: 403,
  });
  expect(b).toEqual({
    names: { domain: 'IdpDomain', audience: 'IdpApiIdentifier' },
    defaults: { dpopEnabled: false, errorBody: 'message', clockTolerance: { exp: 0, nbf: 300 } },
    keyLoading: 'at-start',
    discoveryFallback: 'none',
    subject: 'optional',
    challenge: 'bare',
    insufficientScopeStatus: 401,
  });
});
