import { setImmediate } from 'node:timers/promises';
import { decodeJwt } from 'jose';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openExchange } from '../../../src/core/exchange/exchange.ts';
import { createExchangeCache } from '../../../src/core/exchange/exchange-cache.ts';
import type { ExchangeTarget, TokenExchangeOptions } from '../../../src/core/exchange/exchange-request.ts';
import { createTokenExchange } from '../../../src/core/exchange/token-exchange.ts';
import { AccessError } from '../../../src/core/failures.ts';
import { createIntrospection } from '../../../src/core/introspection/introspection.ts';
import type { Fetch } from '../../../src/core/outbound/http-client.ts';
import { Refused } from '../../../src/core/refused.ts';
import type { Access } from '../../../src/core/resource-server/access.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { createRevocations } from '../../../src/core/revocation/revocations.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const issuer = createTestIssuer({ now: () => time });
const start = 1_800_000_000;
let time = start;
beforeEach(() => {
  time = start;
});

const required = { issuer: issuer.issuer, clientId: 'gate', clientSecret: 's3cret' };
const orders: ExchangeTarget = { audience: 'https://orders.test/' };
const accessType = 'urn:ietf:params:oauth:token-type:access_token';
const issued = (token: string, members: object = {}) => ({
  ...{ access_token: token, token_type: 'Bearer', issued_token_type: accessType, expires_in: 300 },
  ...members,
});

type Call = { readonly url: string; readonly form: Readonly<Record<string, string>>; readonly authorization: string };

/** Holds the responses of a provider until the returned function is called. */
function hold(state: ReturnType<typeof script>['state']): () => void {
  let respond = () => {};
  state.gate = new Promise((resolve) => {
    respond = resolve;
  });
  return respond;
}

/** A provider in memory that responds as a test says; by default with a new token for each call. */
function script() {
  const calls: Call[] = [];
  const metadata = { issuer: issuer.issuer, token_endpoint: 'https://issuer.test/token' };
  const state = {
    documents: 0,
    document: metadata as object,
    status: 200,
    answer: (_call: Call, n: number): unknown => issued(`new-${n}`),
    /** Held before a response, if a test sets it. */
    gate: undefined as Promise<void> | undefined,
    redirected: false,
  };
  const fetch: Fetch = async (url, { body = '', headers }) => {
    const respond = (status: number, value: unknown) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      const { redirected } = state;
      return { status, redirected, headers: new Headers(), body: new Blob([text]).stream() };
    };
    if (url.endsWith('openid-configuration')) {
      state.documents++;
      return respond(200, state.document);
    }
    const form = Object.fromEntries(new URLSearchParams(body));
    const call = { url, form, authorization: headers['authorization'] ?? '' };
    const n = calls.push(call);
    await state.gate;
    return respond(state.status, state.answer(call, n));
  };
  return { calls, state, fetch };
}

function open(options: Partial<TokenExchangeOptions> = {}) {
  const provider = script();
  const revocations = createRevocations({ now: () => time });
  const server = createResourceServer({
    ...{ issuers: [issuer], audience: issuer.audience, revocations, now: () => time },
  });
  const exchange = createTokenExchange({ ...required, fetch: provider.fetch, ...options });
  const admit = (claims: Record<string, unknown> = {}): Promise<Access> =>
    server.authorize(new Request(issuer.audience, { headers: issuer.headers(claims) }));
  const tokenOf = async (access: Access, target = orders) => (await exchange.exchange(access, target)).token;
  const reasonOf = (access: Access, target = orders) =>
    exchange.exchange(access, target).then(
      () => 'accepted',
      (error: unknown) => (error instanceof AccessError ? error.reason : error),
    );
  return { ...provider, revocations, server, exchange, admit, tokenOf, reasonOf };
}

describe('the request', () => {
  it('has the form of RFC 8693 §2.1, and goes to the endpoint of the metadata, which is read once', async () => {
    const { calls, state, admit, exchange } = open();
    const [alice, bob] = [await admit({ sub: 'alice' }), await admit({ sub: 'bob' })];
    const target = { audience: 'https://orders.test/', resource: 'urn:orders', scopes: ['read', 'write'] };
    expect(await exchange.exchange(alice, target)).toEqual({ token: 'new-1', expiresAt: start + 300 });
    await exchange.exchange(bob, target);
    expect(calls[0]).toEqual({
      url: 'https://issuer.test/token',
      authorization: `Basic ${Buffer.from('gate:s3cret').toString('base64')}`,
      form: {
        ...{ grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: alice.token },
        ...{ subject_token_type: accessType, requested_token_type: accessType },
        ...{ audience: 'https://orders.test/', resource: 'urn:orders', scope: 'read write' },
      },
    });
    expect([state.documents, calls.length]).toEqual([1, 2]);
  });

  it('`endpoint` → no metadata is read; client_secret_post, an actor token → members of the form', async () => {
    let actor = 'actor-1';
    const options = { endpoint: 'https://login.test/token', clientSecretMethod: 'client_secret_post' } as const;
    const { calls, state, admit, tokenOf } = open({ ...options, actorToken: () => actor });
    await tokenOf(await admit());
    actor = 'actor-2';
    await tokenOf(await admit());
    const members = { client_id: 'gate', client_secret: 's3cret', actor_token_type: accessType };
    expect(calls).toMatchObject([
      { url: 'https://login.test/token', authorization: '', form: { ...members, actor_token: 'actor-1' } },
      { form: { actor_token: 'actor-2' } },
    ]);
    expect(state.documents).toBe(0);
  });

  it('the metadata → is read again after 10 minutes; without a response, the known endpoint is used', async () => {
    const { calls, state, admit, tokenOf } = open({ actorToken: 'actor' });
    await tokenOf(await admit());
    time += 599;
    await tokenOf(await admit());
    expect(state.documents).toBe(1);
    time += 1;
    state.document = 'down' as never;
    await tokenOf(await admit());
    expect([state.documents, new Set(calls.map(({ url }) => url)).size]).toEqual([2, 1]);
  });

  it('a clock that is set back → the metadata is read again', async () => {
    const { state, admit, tokenOf } = open();
    await tokenOf(await admit());
    time -= 600;
    await tokenOf(await admit());
    expect(state.documents).toBe(2);
  });

  it('a server without revocations, a token without sub → exchanged, as a token of the client', async () => {
    const { exchange } = open();
    const server = createResourceServer({
      ...{ issuers: [issuer], audience: issuer.audience },
      subject: 'optional',
      now: () => time,
    });
    const headers = issuer.headers({ sub: undefined });
    const access = await server.authorize(new Request(issuer.audience, { headers }));
    const all = [exchange.exchange(access, orders), exchange.exchange(access, { audience: 'https://b.test/' })];
    expect((await Promise.all(all)).map(({ token }) => token)).toEqual(['new-1', 'new-2']);
  });

  it.each([
    [
      'cannot be read',
      () => {
        throw new Error('ENOENT');
      },
    ],
    ['is empty', () => ''],
  ])('an actor token that %s → exchange_unavailable, and no request', async (_what, actorToken) => {
    const { calls, admit, reasonOf } = open({ actorToken });
    expect([await reasonOf(await admit()), calls]).toEqual(['exchange_unavailable', []]);
  });

  it.each([
    ['of another issuer', { document: { issuer: 'https://other.test/', token_endpoint: 'https://issuer.test/token' } }],
    [
      'with an http token_endpoint',
      { document: { issuer: issuer.issuer, token_endpoint: 'http://issuer.test/token' } },
    ],
    ['without a token_endpoint', { document: { issuer: issuer.issuer } }],
  ])('metadata %s → exchange_unavailable, and it is read again', async (_what, wrong) => {
    const { calls, state, admit, reasonOf } = open();
    const access = await admit();
    const { document } = state;
    Object.assign(state, wrong);
    expect([await reasonOf(access), calls]).toEqual(['exchange_unavailable', []]);
    state.document = document;
    expect(await reasonOf(access)).toBe('accepted');
  });
});

describe('a clock that is set back by an hour after seconds', () => {
  const { now } = performance;
  const setBack = (after: number): void => {
    vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + after * 1000);
    onTestFinished(() => void vi.restoreAllMocks());
    time += after - 3600;
  };

  it('a refusal → requested again after 5 s', async () => {
    const { state, admit, reasonOf } = open();
    const access = await admit();
    Object.assign(state, { status: 400, answer: () => ({ error: 'invalid_grant' }) });
    expect([await reasonOf(access), await reasonOf(access)]).toEqual(['exchange_refused', 'exchange_refused']);
    state.status = 200;
    state.answer = () => issued('new');
    setBack(6);
    expect(await reasonOf(access)).toBe('accepted');
  });

  it('a token of 300 s → a new one after 290 s', async () => {
    const { admit, tokenOf } = open();
    const access = await admit();
    expect([await tokenOf(access), await tokenOf(access)]).toEqual(['new-1', 'new-1']);
    setBack(291);
    expect(await tokenOf(access)).toBe('new-2');
  });
});

describe('the response', () => {
  const token = 'new';
  it.each<readonly [string, object, number]>([
    ['without expires_in', { expires_in: undefined }, 60],
    ['with a string of digits', { expires_in: '120' }, 120],
    ['with the largest integer of 64 bits', { expires_in: '9223372036854775807' }, 1e11],
    ['with expires_in 0', { expires_in: 0 }, 0],
    ['with a negative expires_in', { expires_in: -5 }, -5],
    ['with token_type BEARER', { token_type: 'BEARER' }, 300],
    ['with 16 KiB', { access_token: 'x'.repeat(16_384) }, 300],
  ])('%s → accepted', async (_what, members, lifetime) => {
    const { state, admit, exchange } = open();
    state.answer = () => issued(token, members);
    expect(await exchange.exchange(await admit(), orders)).toMatchObject({ expiresAt: start + lifetime });
  });

  it.each<readonly [string, unknown, number?]>([
    ['above 16 KiB', issued('x'.repeat(16_385))],
    ['with a line break in the token', issued('a\r\nb')],
    ['with a token that is empty', issued('')],
    ['with a token that is a number', issued(token, { access_token: 5 })],
    [
      'with another issued_token_type',
      issued(token, { issued_token_type: 'urn:ietf:params:oauth:token-type:id_token' }),
    ],
    ['without issued_token_type', issued(token, { issued_token_type: undefined })],
    ['with token_type N_A', issued(token, { token_type: 'N_A' })],
    ['with token_type DPoP', issued(token, { token_type: 'DPoP' })],
    ['with expires_in that is a word', issued(token, { expires_in: 'soon' })],
    ['with a duplicate member', '{"access_token":"a","access_token":"b","token_type":"Bearer"}'],
    ['that is a page', '<html>', 200],
    ['of 65 KiB', issued(token, { padding: 'x'.repeat(65_536) })],
    ['with a redirect', '', 302],
    ['with a limit', { error: 'invalid_grant' }, 429],
    ['with 500', { error: 'invalid_grant' }, 500],
    ['with 201', issued(token), 201],
    ['with invalid_client', { error: 'invalid_client' }, 401],
    ['with another error', { error: 'x\u001b[31m'.repeat(30) }, 400],
    ['with a page of 400', '<html>', 400],
  ])('%s → exchange_unavailable, and the next request tries again', async (_what, answer, status = 200) => {
    const { calls, state, admit, reasonOf } = open();
    const access = await admit();
    Object.assign(state, { status, answer: () => answer });
    expect(await reasonOf(access)).toBe('exchange_unavailable');
    Object.assign(state, { status: 200, answer: () => issued(token) });
    expect([await reasonOf(access), calls.length]).toEqual(['accepted', 2]);
  });

  it('with the caller’s own token → exchange_unavailable: it never leaves', async () => {
    const { state, admit, reasonOf } = open();
    state.answer = ({ form }) => issued(form['subject_token'] ?? '');
    expect(await reasonOf(await admit())).toBe('exchange_unavailable');
  });

  it('of a `fetch` that follows redirects → exchange_unavailable', async () => {
    const { state, admit, reasonOf } = open({ endpoint: 'https://login.test/token' });
    state.redirected = true;
    expect(await reasonOf(await admit())).toBe('exchange_unavailable');
  });

  it('none in time → exchange_unavailable', async () => {
    const { state, admit, reasonOf } = open({ timeoutSeconds: 0.02 });
    state.gate = new Promise(() => {});
    expect(await reasonOf(await admit())).toBe('exchange_unavailable');
  });

  it.each([
    ['invalid_grant', 403],
    ['invalid_target', 400],
    ['invalid_scope', 400],
  ])('%s → exchange_refused for 5 s, with the error for the log only', async (error, status) => {
    const { calls, state, admit, exchange } = open();
    const access = await admit();
    Object.assign(state, { status, answer: () => ({ error, error_description: 'secret' }) });
    const refusal = exchange.exchange(access, orders);
    await expect(refusal).rejects.toMatchObject({ reason: 'exchange_refused', context: { error } });
    time += 4;
    await expect(exchange.exchange(access, orders)).rejects.toThrow('Access to this resource is not allowed.');
    expect(calls.length).toBe(1);
    time += 2;
    state.status = 200;
    state.answer = () => issued(token);
    expect((await exchange.exchange(access, orders)).token).toBe(token);
  });
});

describe('the cache', () => {
  it('one token and one target → one exchange, also of requests at the same time', async () => {
    const { calls, admit, tokenOf } = open();
    const access = await admit();
    expect(await Promise.all([tokenOf(access), tokenOf(access)])).toEqual(['new-1', 'new-1']);
    expect([await tokenOf(access), calls.length]).toEqual(['new-1', 1]);
  });

  it('another token of the same caller, another audience, resource or scope → another exchange', async () => {
    const { admit, tokenOf } = open();
    const [one, two] = [await admit(), await admit()];
    const targets: readonly ExchangeTarget[] = [
      ...[orders, { resource: 'https://orders.test/' }, { audience: 'https://orders.test/x' }],
      ...[
        { ...orders, scopes: ['a'] },
        { ...orders, scopes: ['a', 'b'] },
        { ...orders, resource: 'urn:a' },
      ],
    ];
    const all = [tokenOf(two), ...targets.map((target) => tokenOf(one, target))];
    expect(new Set(await Promise.all(all)).size).toBe(all.length);
  });

  it('opaque tokens with one end → each its own exchange, at the same time too', async () => {
    const { exchange, calls, state } = open();
    const introspection = createIntrospection({
      ...{ endpoint: 'https://issuer.test/introspect', issuer: issuer.issuer, clientId: 'api', clientSecret: 's' },
      fetch: async (_url, { body = '' }) => {
        const sub = new URLSearchParams(body).get('token')?.[0];
        const text = JSON.stringify({ active: true, sub, aud: issuer.audience, exp: start + 600, client_id: 'c' });
        return { status: 200, redirected: false, headers: new Headers(), body: new Blob([text]).stream() };
      },
    });
    const server = createResourceServer({
      issuers: [issuer],
      audience: issuer.audience,
      introspection,
      now: () => time,
    });
    const admitOpaque = (first: string) => {
      const headers = { authorization: `Bearer ${first}${'x'.repeat(60)}` };
      return server.authorize(new Request(issuer.audience, { headers }));
    };
    const callers = await Promise.all(['a', 'b', 'a', 'b'].map(admitOpaque));
    state.answer = ({ form }) => issued(`for-${form['subject_token']?.[0]}`);
    const tokens = async () =>
      (await Promise.all(callers.map((each) => exchange.exchange(each, orders)))).map(({ token }) => token);
    expect([await tokens(), calls.length]).toEqual([['for-a', 'for-b', 'for-a', 'for-b'], 2]);
    expect(await tokens()).toEqual(['for-a', 'for-b', 'for-a', 'for-b']);
  });

  it('a provider that returns the token of another user → only its own caller gets it; the other is exchanged', async () => {
    const { calls, state, admit, tokenOf } = open();
    const [alice, bob] = [await admit({ sub: 'alice' }), await admit({ sub: 'bob' })];
    state.answer = () => issued('of-bob');
    expect(await tokenOf(alice)).toBe('of-bob');
    state.answer = (_call, n) => issued(`bob-${n}`);
    expect([await tokenOf(bob), await tokenOf(alice), calls.length]).toEqual(['bob-2', 'of-bob', 2]);
  });

  it('a target that ends like the token of another begins → another exchange', async () => {
    const cache = createExchangeCache();
    const { fetch } = script();
    const [a, b] = [openExchange({ ...required, fetch }, cache), openExchange({ ...required, fetch }, cache)];
    const keys = [
      a.prepare({ audience: 'x' }),
      a.prepare({ audience: 'x","resource":"y' }),
      b.prepare({ audience: 'x' }),
    ];
    expect(new Set(keys.map(({ key }) => key)).size).toBe(3);
    expect(keys.some(({ key }) => keys.some((other) => other.key !== key && other.key.startsWith(key)))).toBe(false);
  });

  it.each([
    ['a tenth of 50 s', 50, {}, 45],
    ['10 s of 300 s', 300, {}, 290],
    ['60 s without expires_in', undefined, {}, 54],
    ['the end of the caller’s token, less 10 s', 3600, { exp: start + 200 }, 190],
  ])('%s before its end → exchanged again', async (_what, expires_in, claims, end) => {
    const { state, admit, tokenOf, calls } = open();
    state.answer = (_call, n) => issued(`new-${n}`, { expires_in });
    const access = await admit(claims);
    await tokenOf(access);
    time = start + end - 1;
    await tokenOf(access);
    expect(calls.length).toBe(1);
    time = start + end;
    expect(await tokenOf(access)).toBe('new-2');
  });

  it('the last seconds of the caller’s token → few exchanges, not one for each request', async () => {
    const { admit, tokenOf, calls } = open();
    const access = await admit({ exp: start + 20 });
    for (; time < start + 20; time += 0.01) await tokenOf(access);
    expect(calls.length).toBeLessThan(8);
  });

  it.each([0, -1])('expires_in %s → nothing is cached', async (expires_in) => {
    const { state, admit, tokenOf } = open();
    state.answer = (_call, n) => issued(`new-${n}`, { expires_in });
    const access = await admit();
    expect([await tokenOf(access), await tokenOf(access)]).toEqual(['new-1', 'new-2']);
  });

  it('1,000 callers with 3 requests each → 1,000 exchanges, each with its own token', async () => {
    const { state, admit, exchange, calls } = open();
    state.answer = ({ form }) => issued(`for-${decodeJwt(form['subject_token'] ?? '').sub}`);
    const names = Array.from({ length: 1000 }, (_, n) => `user-${n}`);
    const callers = await Promise.all(names.map((sub) => admit({ sub })));
    const all = await Promise.all([...callers, ...callers, ...callers].map((each) => exchange.exchange(each, orders)));
    expect(all.map(({ token }) => token)).toEqual([...names, ...names, ...names].map((name) => `for-${name}`));
    expect(calls.length).toBe(1000);
  });

  it('the provider is down for a minute → cached tokens are used, others get 503; afterwards it works', async () => {
    const { state, admit, reasonOf } = open();
    const known = await admit();
    await reasonOf(known);
    const answer = state.answer;
    state.answer = () => {
      throw new TypeError('fetch failed');
    };
    for (; time < start + 60; time += 10) {
      expect([await reasonOf(known), await reasonOf(await admit())]).toEqual(['accepted', 'exchange_unavailable']);
    }
    state.answer = answer;
    expect(await reasonOf(await admit())).toBe('accepted');
  });

  it('a caller with many tokens → evicts its own entries, and none of another caller', async () => {
    const cache = createExchangeCache(16 * 20_000);
    const { fetch, calls } = script();
    const { admit } = open();
    const exchange = openExchange({ ...required, fetch }, cache);
    const target = exchange.prepare(orders);
    const other = await admit({ sub: 'other' });
    const tokens = await Promise.all(Array.from({ length: 60 }, () => admit({ sub: 'many' })));
    await exchange.take(other, target);
    for (const each of tokens) await exchange.take(each, target);
    expect(cache.status().bytes).toBeLessThanOrEqual(40_000);
    await exchange.take(other, target);
    await exchange.take(tokens.at(-1) as Access, target);
    expect(calls.length).toBe(61);
    const second = openExchange({ ...required, fetch }, cache);
    await second.take(other, second.prepare(orders));
    exchange.close();
    expect(cache.status().entries).toBe(1);
    second.close();
    expect(cache.status()).toEqual({ entries: 0, bytes: 0 });
  });

  it('a token that is larger than the part of a caller → is not cached', async () => {
    const cache = createExchangeCache(16 * 2000);
    const { fetch, state, calls } = script();
    state.answer = () => issued('x'.repeat(3000));
    const exchange = openExchange({ ...required, fetch }, cache);
    const access = await open().admit();
    await exchange.take(access, exchange.prepare(orders));
    await exchange.take(access, exchange.prepare(orders));
    expect(calls.length).toBe(2);
  });

  it('more requests in flight than may wait → exchange_unavailable for the caller that sends them', async () => {
    const { state, admit, reasonOf } = open({ maxCalls: 2, timeoutSeconds: 0.05 });
    state.gate = new Promise(() => {});
    const access = await admit();
    const all = Array.from({ length: 12 }, (_, n) => reasonOf(access, { audience: `https://${n}.test/` }));
    expect(await Promise.all(all)).toEqual(all.map(() => 'exchange_unavailable'));
  });
});

describe('a token that an upstream refused', () => {
  async function prepare() {
    const cache = createExchangeCache();
    const { fetch, calls, state } = script();
    const exchange = openExchange({ ...required, fetch }, cache);
    const target = exchange.prepare(orders);
    const access = await open().admit();
    const take = async () => {
      const result = await exchange.take(access, target);
      if (result instanceof Refused) throw result.toError();
      return result;
    };
    return {
      calls,
      state,
      take,
      discard: (used: Awaited<ReturnType<typeof take>>) => exchange.discard(access, target, used),
    };
  }

  it('is discarded, at most once in 10 s', async () => {
    const { take, discard } = await prepare();
    const first = await take();
    expect(discard(first)).toBe(true);
    const second = await take();
    expect([second.token, discard(second), (await take()).token]).toEqual(['new-2', false, 'new-2']);
    time += 10;
    expect([discard(second), (await take()).token]).toEqual([true, 'new-3']);
  });

  it('a clock that is set back → the next one is discarded too', async () => {
    const { take, discard } = await prepare();
    discard(await take());
    const second = await take();
    time -= 3600;
    expect(discard(second)).toBe(true);
  });

  it('after many uses → is discarded; at its end, it is exchanged again', async () => {
    const { take, discard, calls } = await prepare();
    const uses = [await take(), await take(), await take()];
    expect([new Set(uses).size, calls.length, discard(uses[0] as never)]).toEqual([1, 1, true]);
    expect([(await take()).token, (await take()).token, (await take()).token]).toEqual(['new-2', 'new-2', 'new-2']);
    time += 289;
    expect((await take()).token).toBe('new-2');
    time += 1;
    expect((await take()).token).toBe('new-3');
  });

  it('by many requests → one exchange; each may be sent again with the new token', async () => {
    const { calls, take, discard } = await prepare();
    const first = await take();
    expect(discard(first)).toBe(true);
    const next = take();
    await setImmediate();
    expect([discard(first), (await next).token, discard(first), calls.length]).toEqual([true, 'new-2', true, 2]);
  });

  it('and was never cached, or whose exchange failed → is not sent again', async () => {
    const { state, take, discard } = await prepare();
    state.answer = () => issued('once', { expires_in: 0 });
    const used = await take();
    expect(discard(used)).toBe(false);
    state.answer = () => issued('cached');
    const cached = await take();
    expect(discard(cached)).toBe(true);
    Object.assign(state, { status: 400, answer: () => ({ error: 'invalid_grant' }) });
    await expect(take()).rejects.toMatchObject({ reason: 'exchange_refused' });
    expect(discard(cached)).toBe(false);
  });
});

describe('a caller whose token has ended', () => {
  const cutoff = { issuer: issuer.issuer, sub: 'mallory' };
  const revoked = { ...cutoff, before: start };

  it('a cutoff → no exchange, and the cached token is dropped', async () => {
    const cache = createExchangeCache();
    const { fetch, calls } = script();
    const { admit, revocations } = open();
    const exchange = openExchange({ ...required, fetch }, cache);
    const [mallory, alice] = [await admit({ sub: 'mallory' }), await admit({ sub: 'alice' })];
    for (const each of [mallory, alice]) await exchange.take(each, exchange.prepare(orders));
    await revocations.revoke(revoked);
    expect(await exchange.take(mallory, exchange.prepare(orders))).toMatchObject({ reason: 'revoked_token' });
    await expect.poll(() => cache.status().entries).toBe(1);
    expect(calls.length).toBe(2);
  });

  it('a cutoff while the exchange is in flight → revoked_token, and nothing is cached', async () => {
    const { state, admit, reasonOf, revocations, calls } = open();
    const access = await admit({ sub: 'mallory' });
    const respond = hold(state);
    const pending = [reasonOf(access), reasonOf(access)];
    await expect.poll(() => calls.length).toBe(1);
    await revocations.revoke(revoked);
    respond();
    expect(await Promise.all(pending)).toEqual(['revoked_token', 'revoked_token']);
  });

  it('a cutoff while it waits for its turn → revoked_token, and no request', async () => {
    const { state, admit, reasonOf, revocations, calls } = open({ maxCalls: 1 });
    const [alice, mallory] = [await admit({ sub: 'alice' }), await admit({ sub: 'mallory' })];
    const respond = hold(state);
    const pending = [reasonOf(alice), reasonOf(mallory)];
    await expect.poll(() => calls.length).toBe(1);
    await revocations.revoke(revoked);
    respond();
    expect([await Promise.all(pending), calls.length]).toEqual([['accepted', 'revoked_token'], 1]);
  });

  it('a cutoff that is older than the token → the cached token stays', async () => {
    const { admit, tokenOf, revocations } = open();
    const access = await admit({ sub: 'mallory' });
    await tokenOf(access);
    await revocations.revoke({ ...cutoff, before: start - 1 });
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await tokenOf(access)).toBe('new-1');
  });

  it('an opaque token without iat and a cutoff in flight → 503; the next introspection decides', async () => {
    const revocations = createRevocations({ now: () => time });
    const introspection = await issuer.introspection();
    const server = createResourceServer({
      ...{ issuers: [issuer], audience: issuer.audience, introspection, revocations, now: () => time },
    });
    const headers = { authorization: `Bearer ${issuer.opaqueToken({ sub: 'mallory', iat: undefined })}` };
    const access = await server.authorize(new Request(issuer.audience, { headers }));
    const { state, calls, reasonOf } = open();
    const respond = hold(state);
    const pending = reasonOf(access as Access);
    await expect.poll(() => calls.length).toBe(1);
    await revocations.revoke(revoked);
    await new Promise((resolve) => setTimeout(resolve, 5));
    respond();
    expect([await pending, await reasonOf(access as Access)]).toEqual(['exchange_unavailable', 'accepted']);
  });

  it('its end → expired', async () => {
    const { admit, reasonOf } = open();
    const access = await admit();
    await reasonOf(access);
    time += 3605;
    expect(await reasonOf(access)).toBe('expired');
  });
});

describe('refused tokens and targets', () => {
  it('a token with cnf → exchange_refused; with `bound`, it is exchanged', async () => {
    const client = issuer.dpopClient();
    const request = () =>
      new Request(issuer.audience, { headers: client.headers({ method: 'GET', url: issuer.audience }) });
    for (const [options, reason] of [
      [{}, 'exchange_refused'] as const,
      [{ bound: 'allow' as const }, 'accepted'] as const,
    ]) {
      const { server, reasonOf, calls } = open(options);
      expect(await reasonOf(await server.authorize(request()))).toBe(reason);
      expect(calls.length).toBe(reason === 'accepted' ? 1 : 0);
    }
  });

  it('a token of another issuer → exchange_refused, and no request', async () => {
    const { admit, reasonOf, calls } = open({ issuer: 'https://other.test/' });
    expect([await reasonOf(await admit()), calls]).toEqual(['exchange_refused', []]);
  });

  it('a value that is not access → TypeError', async () => {
    const { admit, exchange } = open();
    await expect(exchange.exchange({ ...(await admit()) }, orders)).rejects.toThrow(TypeError);
    await expect(exchange.exchange(undefined as never, orders)).rejects.toThrow(TypeError);
  });

  it.each<readonly [string, unknown]>([
    ['no target', undefined],
    ['neither audience nor resource', {}],
    ['an empty audience', { audience: '' }],
    ['a resource that is not absolute', { resource: '/orders' }],
    ['a resource with a fragment', { resource: 'https://orders.test/#x' }],
    ['scopes as one string', { ...orders, scopes: 'a b' }],
    ['a scope with a space', { ...orders, scopes: ['a b'] }],
    ['an unknown member', { ...orders, scope: ['a'] }],
  ])('%s → TypeError', async (_what, target) => {
    const { admit, exchange } = open();
    await expect(exchange.exchange(await admit(), target as ExchangeTarget)).rejects.toThrow(TypeError);
  });

  it.each<readonly [string, object]>([
    ['no issuer', { issuer: '' }],
    ['an http issuer without an endpoint', { issuer: 'http://issuer.test/' }],
    ['an http endpoint', { endpoint: 'http://issuer.test/token' }],
    ['no secret', { clientSecret: undefined }],
    ['bound that is not allow', { bound: true }],
    ['an empty actor token', { actorToken: '' }],
    ['a time limit of 0', { timeoutSeconds: 0 }],
    ['no calls', { maxCalls: 0 }],
    ['an unknown option', { audience: 'https://orders.test/' }],
  ])('%s → TypeError', (_what, options) =>
    expect(() => createTokenExchange({ ...required, ...options })).toThrow(TypeError),
  );

  it('a closed exchange → exchange_unavailable', async () => {
    const { admit, exchange, reasonOf } = open();
    exchange.close();
    expect(await reasonOf(await admit())).toBe('exchange_unavailable');
  });
});
