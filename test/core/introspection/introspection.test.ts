import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { inspect } from 'node:util';
import { jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { AccessError } from '../../../src/core/failures.ts';
import type { ClientKey } from '../../../src/core/introspection/client-authentication.ts';
import { createIntrospection, type IntrospectionOptions } from '../../../src/core/introspection/introspection.ts';
import type { FetchInit } from '../../../src/core/outbound/http-client.ts';

const required = {
  endpoint: 'https://idp.test/introspect',
  issuer: 'https://idp.test/',
  clientId: 'api',
  clientSecret: 's3cret',
};
const active = { active: true, sub: 'alice' };
const pemOf = ({ privateKey }: { readonly privateKey: KeyObject }) =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const rsaKey = pemOf(generateKeyPairSync('rsa', { modulusLength: 2048 }));
const digestOf = (token: string) => createHash('sha256').update(token).digest('base64url');

/** An introspection on a clock that a test sets, before an endpoint that answers as it is told. */
function open(options: Partial<IntrospectionOptions> = {}) {
  const calls: (FetchInit & { readonly url: string })[] = [];
  const state: { answer: unknown; status: number; time: number } = { answer: active, status: 200, time: 1000 };
  const introspection = createIntrospection({
    ...required,
    now: () => state.time,
    fetch: async (url, init) => {
      calls.push({ ...init, url });
      await Promise.resolve();
      const { answer, status } = state;
      const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
      return { status, redirected: false, headers: new Headers(), body: new Blob([text]).stream() };
    },
    ...options,
  });
  const ask = async (token: string) => introspection.introspect(token, digestOf(token));
  const reasonOf = async (token: string) => {
    const answer = await ask(token);
    return answer instanceof AccessError ? answer.reason : 'accepted';
  };
  return { introspection, calls, state, ask, reasonOf };
}

it('a response that must be newer than a cutoff → one more query; the new response serves all', async () => {
  const { introspection, calls, state } = open();
  const ask = async (since?: number) => introspection.introspect('opaque', digestOf('opaque'), '', since);
  await ask();
  state.time += 1;
  await Promise.all([ask(state.time), ask(state.time), ask()]);
  expect(calls.length).toBe(2);
  await ask(state.time);
  expect(calls.length).toBe(2);
});

describe('the call', () => {
  it('is a form with the token, under client_secret_basic (RFC 7662 §2.1, RFC 6749 §2.3.1)', async () => {
    const { ask, calls } = open({ clientId: 'an api:1', clientSecret: 'p%ss w+rd é' });
    expect(await ask('opaque~token+/=')).toEqual(active);
    const [call] = calls;
    expect(call).toMatchObject({ url: required.endpoint, method: 'POST', redirect: 'manual' });
    expect(call?.body).toBe('token=opaque%7Etoken%2B%2F%3D&token_type_hint=access_token');
    const basic = call?.headers['authorization']?.replace('Basic ', '') ?? '';
    expect(Buffer.from(basic, 'base64').toString()).toBe('an+api%3A1:p%25ss+w%2Brd+%C3%A9');
    expect(call?.headers).toMatchObject({
      accept: expect.stringMatching(/^application\/json,/),
      'content-type': 'application/x-www-form-urlencoded',
    });
  });

  it('client_secret_post → name and secret are members of the form (RFC 6749 §2.3.1)', async () => {
    const { ask, calls } = open({ clientSecret: 'p%ss w+rd é', clientSecretMethod: 'client_secret_post' });
    expect(await ask('opaque')).toEqual(active);
    const [{ body, headers } = { body: '', headers: {} }] = calls;
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      ...{ token: 'opaque', token_type_hint: 'access_token' },
      ...{ client_id: 'api', client_secret: 'p%ss w+rd é' },
    });
    expect(headers).not.toHaveProperty('authorization');
  });

  it('private_key_jwt → a new assertion for each request, for the issuer, of 60 s (RFC 7523 §2.2)', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { clientSecret: _, ...others } = required;
    const bodies: string[] = [];
    const introspection = createIntrospection({
      ...others,
      clientKey: { key: pemOf({ privateKey }), kid: 'one' },
      fetch: async (_url, { body = '' }) => {
        bodies.push(body);
        return Response.json(active);
      },
    });
    for (const token of ['a', 'b']) expect(await introspection.introspect(token, digestOf(token))).toEqual(active);
    const forms = bodies.map((body) => Object.fromEntries(new URLSearchParams(body)));
    const ids = new Set<unknown>();
    for (const { client_assertion: assertion = '', ...form } of forms) {
      expect(form).toMatchObject({
        client_id: 'api',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      });
      const limits = { issuer: 'api', subject: 'api', audience: required.issuer, maxTokenAge: 60 };
      const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, limits);
      expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'JWT', kid: 'one' });
      expect(Number(payload.exp) - Number(payload.iat)).toBe(60);
      ids.add(payload.jti);
    }
    expect(ids.size).toBe(2);
  });

  it.each([
    ['not a key', { key: 'no PEM with s3cret' }, /^clientKey: write a private key in PEM or as a JWK/],
    ['RSA of 1024 bits', { key: pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 })) }, /needs 2048 bits$/],
    ['P-384', { key: pemOf(generateKeyPairSync('ec', { namedCurve: 'P-384' })) }, /^clientKey: write an RSA key for/],
    ['RSA for ES256', { key: rsaKey, alg: 'ES256' }, /^clientKey: write an RSA key for/],
    ['Ed25519', { key: pemOf(generateKeyPairSync('ed25519')) }, /^clientKey: write an RSA key for/],
    ['an option that does not exist', { key: rsaKey, aud: 'a' }, /^clientKey: there is no aud;/],
  ])('clientKey: %s → TypeError, without the key', (_name, clientKey, message) => {
    const { clientSecret: _, ...others } = required;
    const create = () => createIntrospection({ ...others, clientKey: clientKey as ClientKey });
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
    expect(create).not.toThrow(/s3cret|BEGIN/);
  });

  it.each(['two words', 'a"b', 'a\nb', 'é', '=', 'a=b', 'a,b'])('%j is not a token → none', async (token) => {
    const { reasonOf, calls } = open();
    expect(await reasonOf(token)).toBe('malformed_token');
    expect(calls).toHaveLength(0);
  });

  it('one for a token at a time, however many wait for it; another token has its own', async () => {
    const { ask, calls, introspection } = open();
    const answers = [ask('a'), ask('a'), ask('b'), ask('a')];
    expect(introspection.status()).toMatchObject({ inFlight: 2 });
    expect(await Promise.all(answers)).toEqual([active, active, active, active]);
    expect(calls).toHaveLength(2);
    expect(introspection.status()).toEqual({ active: 2, inactive: 0, inFlight: 0, calls: { ok: 2, failed: 0 } });
  });

  it('no response to earlier requests → waiting ones are refused after the time of one request', async () => {
    const { ask } = open({ maxCalls: 1, timeoutSeconds: 0.05, fetch: () => new Promise(() => undefined) });
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map(ask));
    for (const answer of answers) expect(answer).toMatchObject({ reason: 'introspection_unavailable' });
    expect(answers.at(0)).toMatchObject({ context: { kind: 'timeout' } });
    expect(answers.at(-1)).toMatchObject({ context: { kind: 'too_many_calls' } });
  });

  it('a flood of unknown tokens → tokens of other clients, and tokens that were active before, get a response', async () => {
    const known = ['known 1', 'known 2'].map((name) => name.replace(' ', ''));
    const { introspection, state } = open({ maxCalls: 4, maxSeconds: 10 });
    const ask = (token: string, client: string) => introspection.introspect(token, digestOf(token), client);
    for (const token of known) await ask(token, 'flood');
    state.time += 11;
    const junk = Array.from({ length: 1000 }, (_, index) => ask(`junk${index}`, 'flood'));
    const good = [...known.map((token) => ask(token, 'flood')), ask('fresh1', 'other'), ask('fresh2', 'other')];
    expect(await Promise.all(good)).toEqual([active, active, active, active]);
    expect((await Promise.all(junk)).some((answer) => answer instanceof AccessError)).toBe(true);
  });

  it('a valid token behind a flood of the same address → refused at first, served when it comes again', async () => {
    const { introspection } = open({ maxCalls: 4 });
    const ask = (token: string) => introspection.introspect(token, digestOf(token), '192.0.2.1');
    const flood = (round: number) => Array.from({ length: 1000 }, (_, index) => ask(`junk-${round}-${index}`));
    flood(1);
    expect(await ask('good')).toMatchObject({
      reason: 'introspection_unavailable',
      context: { kind: 'too_many_calls' },
    });
    flood(2);
    expect(await ask('good')).toEqual(active);
  });

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', 'one client'],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', 'two clients'],
  ])('a flood of %s, and a token from %s → %s', async (one, other, expected) => {
    const { introspection } = open({ maxCalls: 4 });
    const ask = (token: string, client: string) => introspection.introspect(token, digestOf(token), client);
    for (let index = 0; index < 1000; index++) void ask(`junk${index}`, one);
    const answer = await ask('good', other);
    expect(answer instanceof AccessError ? 'one client' : 'two clients').toBe(expected);
  });
});

describe('a response', () => {
  it('active → kept for 60 s, and given at once', async () => {
    const { ask, introspection, state, calls } = open();
    await ask('a');
    state.time += 59;
    expect(introspection.introspect('a', digestOf('a'))).toEqual(active);
    state.time += 1;
    expect(introspection.introspect('a', digestOf('a'))).toBeInstanceOf(Promise);
    expect(calls).toHaveLength(2);
  });

  it('not active → inactive_token, kept for 10 s', async () => {
    const { reasonOf, state, calls } = open();
    state.answer = { active: false };
    expect([await reasonOf('a'), await reasonOf('a')]).toEqual(['inactive_token', 'inactive_token']);
    state.answer = active;
    state.time += 9;
    expect(await reasonOf('a')).toBe('inactive_token');
    expect(calls).toHaveLength(1);
    state.time += 1;
    expect(await reasonOf('a')).toBe('accepted');
  });

  it('revoked after it was active → refused when the ceiling is reached', async () => {
    const { reasonOf, state } = open({ maxSeconds: 5 });
    expect(await reasonOf('a')).toBe('accepted');
    state.answer = { active: false };
    state.time += 4;
    expect(await reasonOf('a')).toBe('accepted');
    state.time += 1;
    expect(await reasonOf('a')).toBe('inactive_token');
  });

  it('nothing is kept where the seconds are 0', async () => {
    const { reasonOf, state, calls } = open({ maxSeconds: 0, inactiveSeconds: 0 });
    await reasonOf('a');
    await reasonOf('a');
    state.answer = { active: false };
    await reasonOf('a');
    await reasonOf('a');
    expect(calls).toHaveLength(4);
  });

  it('random tokens evict no response about a valid one', async () => {
    const { reasonOf, state, calls, introspection } = open({ maxEntries: 2 });
    await reasonOf('good');
    state.answer = { active: false };
    for (const token of ['a', 'b', 'c', 'd']) await reasonOf(token);
    expect(introspection.status()).toMatchObject({ active: 1, inactive: 2 });
    expect(await reasonOf('good')).toBe('accepted');
    expect(calls).toHaveLength(5);
  });

  it.each<[string, unknown]>([
    ['not_json', 'active'],
    ['not_json', ['active']],
    ['not_json', '{"active":true,"active":true}'],
    ['not_an_introspection', {}],
    ['not_an_introspection', { active: 'true' }],
    ['not_an_introspection', { active: 1 }],
    ['too_large', { active: true, padding: 'x'.repeat(65_536) }],
  ])('%s → introspection_unavailable, and nothing is kept', async (kind, answer) => {
    const { ask, reasonOf, state, introspection } = open();
    state.answer = answer;
    expect(await ask('a')).toMatchObject({
      reason: 'introspection_unavailable',
      context: { kind },
      cause: { name: 'ProviderError', kind },
    });
    expect(introspection.status()).toEqual({ active: 0, inactive: 0, inFlight: 0, calls: { ok: 0, failed: 1 } });
    state.answer = active;
    expect(await reasonOf('a')).toBe('accepted');
  });

  it.each([
    [301, 'redirect'],
    [401, 'status'],
    [403, 'status'],
    [500, 'status'],
  ])('of status %i → introspection_unavailable: the token may be good', async (status, kind) => {
    const { ask, state } = open();
    state.status = status;
    expect(await ask('a')).toMatchObject({ reason: 'introspection_unavailable', context: { kind } });
  });

  it('that does not come in time → introspection_unavailable, with nothing of token and secret', async () => {
    const { ask } = open({ timeoutSeconds: 0.01, fetch: () => new Promise(() => undefined) });
    const error = await ask('a-token').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ reason: 'introspection_unavailable', context: { kind: 'timeout' } });
    expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/a-token|s3cret/);
  });

  it('a defect while a response is cached → its error, and the next request queries again', async () => {
    let broken = false;
    const now = () => {
      if (broken) throw new RangeError('of the clock');
      return 1000;
    };
    const { ask, calls } = open({ now });
    const failing = ask('a');
    broken = true;
    await expect(failing).rejects.toThrow('of the clock');
    broken = false;
    expect(await ask('a')).toEqual(active);
    expect(calls).toHaveLength(2);
  });

  it('after it was closed → introspection_unavailable', async () => {
    const { introspection, ask } = open();
    introspection.close();
    expect(await ask('a')).toMatchObject({ context: { kind: 'closed' } });
  });
});

describe('selection of tokens', () => {
  it.each([
    ['opaque', true],
    ['with.one', true],
    ['a.b.c.d.e', true],
    ['header.claims.signature', false],
    ['header..signature', false],
    ['header.claims.', true],
    ['.claims.signature', true],
  ])('%s → introspected: %s; all of them if so configured', (token, asked) => {
    expect(open().introspection.handles(token)).toBe(asked);
    expect(open({ tokens: 'all' }).introspection.handles(token)).toBe(true);
  });
});

describe('options that cannot work → TypeError that names the fix and repeats nothing', () => {
  it.each<[Partial<IntrospectionOptions>, RegExp]>([
    [{ endpoint: 'http://idp.test/introspect' }, /^endpoint: write an https URL/],
    [{ endpoint: 'https://api:s3cret@idp.test/' }, /^endpoint: .* without credentials/],
    [{ endpoint: 'https://s3cret@idp.test/' }, /^endpoint: /],
    [{ endpoint: 'https://:s3cret@idp.test/' }, /^endpoint: /],
    [{ endpoint: 'https://idp.test/#a' }, /^endpoint: /],
    [{ endpoint: 'https://' }, /^endpoint: /],
    [{ issuer: '' }, /^issuer: /],
    [{ clientId: '' }, /^clientId: /],
    [{ clientSecret: '' }, /^clientSecret: write a string, or clientKey for private_key_jwt$/],
    [{ clientSecretMethod: 'none' as 'client_secret_post' }, /^clientSecretMethod: write /],
    [{ clientKey: { key: rsaKey } }, /^clientSecret: leave it out with clientKey$/],
    [{ maxSeconds: -1 }, /^maxSeconds: write seconds from 0 to 3600/],
    [{ inactiveSeconds: 3601 }, /^inactiveSeconds: /],
    [{ timeoutSeconds: 0 }, /^timeoutSeconds: /],
    [{ timeoutSeconds: 61 }, /^timeoutSeconds: /],
    [{ maxCalls: 0 }, /^maxCalls: /],
    [{ maxEntries: 1.5 }, /^maxEntries: /],
    [{ tokens: 'some' as 'all' }, /^tokens: write opaque or all/],
    [{ audience: 'none' as 'optional' }, /^audience: write required or optional/],
  ])('%j', (wrong, message) => {
    expect(() => open(wrong)).toThrow(TypeError);
    expect(() => open(wrong)).toThrow(message);
    expect(() => open(wrong)).not.toThrow(/s3cret/);
  });

  it('an endpoint that is left out', () => {
    const { endpoint: _, ...others } = required;
    expect(() => createIntrospection(others as IntrospectionOptions)).toThrow(/^endpoint: /);
  });

  it('no clock → the clock of the host', async () => {
    const { introspection, ask } = open({ now: undefined } as object);
    await ask('a');
    expect(introspection.introspect('a', digestOf('a'))).toEqual(active);
  });
});
