import { describe, expect, it } from 'vitest';
import type { EventResponse } from '../../../../src/core/http/event-post.ts';
import { createResourceServer } from '../../../../src/core/resource-server/resource-server.ts';
import {
  type BackchannelLogoutOptions,
  openBackchannelLogout,
} from '../../../../src/core/revocation/logout/backchannel-logout.ts';
import { createMemoryRevocationStore } from '../../../../src/core/revocation/memory-store.ts';
import { type RevocationStore, RevocationsFull } from '../../../../src/core/revocation/record.ts';
import { createRevocations, readRevocations } from '../../../../src/core/revocation/revocations.ts';
import { createTestIssuer } from '../../../../src/testing/index.ts';

const issuer = createTestIssuer();
const stranger = createTestIssuer({ issuer: 'https://stranger.example/' });
const start = 1_800_000_000;
const event = 'http://schemas.openid.net/event/backchannel-logout';
const form = 'application/x-www-form-urlencoded';

type Claims = Readonly<Record<string, unknown>>;

/** A logout token as providers write it. The claims of an access token are removed. */
function logoutToken(claims: Claims = {}, header: Claims = {}, by = issuer): string {
  const own = { aud: 'app', iat: start, exp: start + 120, jti: 'l1', sub: 'ann', sid: 's1', events: { [event]: {} } };
  return by.token({ client_id: undefined, nbf: undefined, ...own, ...claims }, { typ: 'logout+jwt', ...header });
}

function open(
  options: Partial<BackchannelLogoutOptions> = {},
  store: RevocationStore = createMemoryRevocationStore(),
  keys = issuer.keys,
) {
  const revocations = createRevocations({ store, now: () => start });
  const server = createResourceServer({
    ...{ issuers: [{ issuer: issuer.issuer, keys }], audience: issuer.audience, revocations, now: () => start },
  });
  const outcomes: string[] = [];
  const receiver = openBackchannelLogout(server, {
    clientIds: ['app', 'spa'],
    onLogout: (outcome) => outcomes.push(outcome),
    ...options,
  });
  const post = (
    body: string,
    { type = form as string | null, method = 'POST', address = '192.0.2.1' } = {},
  ): Promise<EventResponse> => {
    const headers = new Headers({ host: 'api.test', ...(type !== null && { 'content-type': type }) });
    const readBody = async (most: number) => (Buffer.byteLength(body) > most ? 413 : body);
    const request = { method, url: 'https://api.test/backchannel-logout', headers };
    return receiver.respond({ request, connection: { remoteAddress: address }, readBody }, '/backchannel-logout');
  };
  const send = (token: string, options = {}) => post(new URLSearchParams({ logout_token: token }).toString(), options);
  const { check } = readRevocations('test', revocations);
  const reasonOf = (claims: Claims) =>
    check({ iss: issuer.issuer, sub: 'ann', sid: 's1', iat: start - 60, exp: start + 60, ...claims })?.reason;
  return { post, send, reasonOf, revocations, outcomes, server };
}

const accepted = { status: 200, body: '', headers: { 'cache-control': 'no-store' } };
const invalid = { status: 400, headers: { 'cache-control': 'no-store', 'content-type': 'application/json' } };

describe('valid logout tokens', () => {
  it.each([
    ['sid and sub', {}, { sub: 'bob' }, 'revoked_token'],
    ['sid and sub: another session of the user', {}, { sid: 's2' }, undefined],
    ['sub alone', { sid: undefined }, { sid: 's2' }, 'revoked_token'],
    ['sub alone: a login in the next second', { sid: undefined }, { sid: 's2', iat: start + 1 }, undefined],
    ['sid alone', { sub: undefined }, { sub: 'bob' }, 'revoked_token'],
    ['several audiences', { aud: ['other', 'spa'] }, {}, 'revoked_token'],
    ['no exp, 120 s old', { exp: undefined, iat: start - 120 }, {}, 'revoked_token'],
    ['iat 5 s in the future', { iat: start + 5 }, {}, 'revoked_token'],
    ['another event next to it', { events: { [event]: {}, 'https://example/other': {} } }, {}, 'revoked_token'],
    ['members of the event', { events: { [event]: { reason: 'idle' } } }, {}, 'revoked_token'],
  ])('%s → 200, and a token with %s gets %s', async (_title, claims, token, reason) => {
    const { send, reasonOf } = open();
    expect(await send(logoutToken(claims))).toEqual(accepted);
    expect(reasonOf(token)).toBe(reason);
  });

  it.each([[undefined], ['JWT'], ['jwt'], ['logout+jwt'], ['Logout+JWT'], ['application/logout+jwt']])(
    'typ %s → 200',
    async (typ) => expect(await open().send(logoutToken({}, { typ }))).toEqual(accepted),
  );

  it('LOGOUT_SUBJECT → the session and all tokens of the user', async () => {
    const { send, reasonOf } = open({ subject: true });
    expect(await send(logoutToken())).toEqual(accepted);
    const reasons = [reasonOf({ sid: 's2' }), reasonOf({ sub: 'bob' }), reasonOf({ sub: 'bob', sid: 's2' })];
    expect(reasons).toEqual(['revoked_token', 'revoked_token', undefined]);
  });

  it('the same token again → the same response, and no further cutoff', async () => {
    const { send, revocations } = open();
    const token = logoutToken();
    expect([await send(token), await send(token), revocations.status().cutoffs]).toEqual([accepted, accepted, 1]);
  });

  it('other fields of the form → ignored', async () => {
    const { post } = open();
    const body = new URLSearchParams({ state: 'x', logout_token: logoutToken(), iss: 'y' }).toString();
    expect(await post(body, { type: `${form};charset=UTF-8` })).toEqual(accepted);
  });
});

describe('invalid logout tokens → 400 invalid_request', () => {
  const cases: readonly (readonly [string, () => string])[] = [
    ['an empty token', () => ''],
    ['a token that is not a JWS', () => 'nonsense'],
    ['a JWE', () => 'a.b.c.d.e'],
    ['a payload that is not JSON', () => logoutToken().replace(/\..*\./, '.bm8.')],
    ['a foreign issuer', () => logoutToken({}, {}, stranger)],
    ['the issuer named by a stranger', () => logoutToken({ iss: issuer.issuer }, {}, stranger)],
    ['an altered signature', () => `${logoutToken().slice(0, -6)}AAAAAA`],
    ['an access token', () => issuer.token({ aud: 'app' })],
    ['typ at+jwt', () => logoutToken({}, { typ: 'at+jwt' })],
    ['typ secevent+jwt', () => logoutToken({}, { typ: 'secevent+jwt' })],
    ['typ that is a number', () => logoutToken({}, { typ: 1 })],
    ['crit', () => logoutToken({}, { crit: ['b64'] })],
    ['no kid', () => logoutToken({}, { kid: undefined })],
    ['an unknown kid', () => logoutToken({}, { kid: 'unknown' })],
    ['alg none', () => logoutToken({}, { alg: 'none' })],
    ['alg HS256', () => logoutToken({}, { alg: 'HS256' })],
    ['another audience', () => logoutToken({ aud: 'other' })],
    ['no audience', () => logoutToken({ aud: undefined })],
    ['an audience that is a number', () => logoutToken({ aud: ['app', 7] })],
    ['no iat', () => logoutToken({ iat: undefined })],
    ['iat in the future', () => logoutToken({ iat: start + 6 })],
    ['iat in milliseconds', () => logoutToken({ iat: start * 1000 })],
    ['iat as a string', () => logoutToken({ iat: String(start) })],
    ['no exp, 121 s old', () => logoutToken({ exp: undefined, iat: start - 121 })],
    ['exp in the past', () => logoutToken({ exp: start - 5 })],
    ['exp as a string', () => logoutToken({ exp: 'later' })],
    ['no events', () => logoutToken({ events: undefined })],
    ['events as an array', () => logoutToken({ events: [event] })],
    ['another event', () => logoutToken({ events: { 'https://example/other': {} } })],
    ['an event that is not an object', () => logoutToken({ events: { [event]: true } })],
    ['neither sid nor sub', () => logoutToken({ sid: undefined, sub: undefined })],
    ['an empty sid', () => logoutToken({ sid: '' })],
    ['a sid that is a number', () => logoutToken({ sid: 7 })],
    ['a sub of 1025 characters', () => logoutToken({ sub: 'a'.repeat(1025) })],
    ['a nonce', () => logoutToken({ nonce: 'n' })],
    ['no jti', () => logoutToken({ jti: undefined })],
    ['an empty jti', () => logoutToken({ jti: '' })],
    ['a jti that is a number', () => logoutToken({ jti: 7 })],
  ];
  it.each(cases)('%s', async (_title, make) => {
    const { send, revocations, outcomes } = open();
    const response = await send(make());
    expect(response).toMatchObject(invalid);
    expect(JSON.parse(response.body)).toEqual({
      error: 'invalid_request',
      error_description: 'The logout token is not valid.',
    });
    expect([revocations.status().cutoffs, outcomes]).toEqual([0, ['invalid']]);
  });

  it('two tokens in one form', async () => {
    const { post } = open();
    expect(await post(`logout_token=${logoutToken()}&logout_token=${logoutToken()}`)).toMatchObject(invalid);
  });

  it.each([
    ['another content type', { type: 'application/json' }, 415],
    ['no content type', { type: null }, 415],
  ] as const)('%s → %s', async (_title, options, status) =>
    expect(await open().send(logoutToken(), options)).toMatchObject({ status }),
  );

  it('a body of more than 16 KiB → 413', async () =>
    expect(await open().post(`logout_token=${'a'.repeat(16 * 1024)}`)).toMatchObject({ status: 413 }));

  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'])('%s → 405 with Allow: POST', async (method) =>
    expect(await open().send(logoutToken(), { method })).toMatchObject({ status: 405, headers: { allow: 'POST' } }),
  );

  it('no response names a configured issuer, client or audience', async () => {
    const { send } = open();
    const responses = await Promise.all(
      cases.map(([, make], index) => send(make(), { address: `198.51.100.${index}` })),
    );
    const text = JSON.stringify(responses);
    for (const name of [issuer.issuer, issuer.audience, '"app"', 'spa']) expect(text).not.toContain(name);
  });
});

describe('availability', () => {
  it.each([
    ['fails', () => new Error('away'), 'unavailable'],
    ['is full', () => new RevocationsFull(), 'full'],
  ])('a store that %s → 400 temporarily_unavailable, and the retry succeeds', async (_title, makeError, outcome) => {
    const memory = createMemoryRevocationStore();
    let isAway = true;
    const { send, outcomes, reasonOf } = open(
      {},
      { ...memory, write: async (records) => (isAway ? Promise.reject(makeError()) : memory.write(records)) },
    );
    const token = logoutToken();
    const response = await send(token);
    expect(response).toMatchObject(invalid);
    expect(JSON.parse(response.body)).toMatchObject({ error: 'temporarily_unavailable' });
    isAway = false;
    expect(await send(token)).toEqual(accepted);
    expect([outcomes, reasonOf({})]).toEqual([[outcome, 'accepted'], 'revoked_token']);
  });

  it('no keys → 400 temporarily_unavailable', async () => {
    const keys = { ...issuer.keys, find: () => undefined, has: () => false, usable: () => false };
    const { body } = await open({}, undefined, keys).send(logoutToken());
    expect(JSON.parse(body)).toMatchObject({ error: 'temporarily_unavailable' });
  });
});

describe('a flood', () => {
  it('20 invalid tokens of one peer → 429 for it, and 200 for another', async () => {
    const { send, outcomes } = open();
    for (let i = 0; i < 20; i++) expect(await send('nonsense')).toMatchObject({ status: 400 });
    const limited = await send(logoutToken());
    expect(limited.status).toBe(429);
    expect(Number(limited.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(outcomes.at(-1)).toBe('limited');
    expect(await send(logoutToken(), { address: '192.0.2.2' })).toEqual(accepted);
  });

  it('30 tokens while the store is away → 400 each, and the peer is not limited', async () => {
    const store = { ...createMemoryRevocationStore(), write: async () => Promise.reject(new Error('away')) };
    const { send, outcomes } = open({}, store);
    for (let i = 0; i < 30; i++) expect(await send(logoutToken())).toMatchObject({ status: 400 });
    expect(new Set(outcomes)).toEqual(new Set(['unavailable']));
  });

  it('tokens of another iss, aud or typ, and of a limited peer → no key is looked up; an unknown kid → one fetch', async () => {
    const seen = { lookups: 0, fetches: 0 };
    const keys: typeof issuer.keys = {
      ...issuer.keys,
      find: (...key) => {
        seen.lookups++;
        return issuer.keys.find(...key);
      },
      refetch: () => {
        seen.fetches++;
        return undefined;
      },
    };
    const { send } = open({}, createMemoryRevocationStore(), keys);
    const old = { iat: start - 300, exp: start - 60 };
    const free = [{ aud: 'other' }, { iss: 'https://other.example/' }, { nonce: 'n' }, old];
    for (const claims of free) await send(logoutToken(claims));
    await send(logoutToken({}, { typ: 'at+jwt' }));
    expect(seen).toEqual({ lookups: 0, fetches: 0 });
    await send(logoutToken());
    expect(seen).toEqual({ lookups: 1, fetches: 0 });
    // A set may have several keys of one kid: a signature that fails looks for others.
    await send(`${logoutToken().slice(0, -8)}AAAAAAAA`);
    expect(seen).toEqual({ lookups: 4, fetches: 0 });
    await send(logoutToken({}, { kid: 'unknown' }));
    expect(seen.fetches).toBe(1);
    for (let i = 0; i < 20; i++) await send('nonsense');
    const { lookups } = seen;
    expect(await send(logoutToken())).toMatchObject({ status: 429 });
    expect(seen.lookups).toBe(lookups);
  });

  it('1,000 valid tokens of a busy provider → all accepted', async () => {
    const { send, outcomes } = open();
    for (let i = 0; i < 1000; i++) await send(logoutToken({ sid: `s${i}` }));
    expect(new Set(outcomes)).toEqual(new Set(['accepted']));
  });
});

describe('options', () => {
  it.each([
    [{ clientIds: [] }, 'clientIds'],
    [{ clientIds: [''] }, 'clientIds'],
    [{ path: 'logout' }, 'path'],
    [{ clients: ['app'] }, 'clients'],
  ])('%j → TypeError about %s', (options, name) => expect(() => open(options as object)).toThrow(name));

  it('a server without revocations → TypeError', () => {
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
    expect(() => openBackchannelLogout(server, { clientIds: ['app'] })).toThrow('revocations');
  });
});

it('a logout token as an access token → refused', async () => {
  const { server } = open();
  const decide = async (token: string) => {
    const request = new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } });
    return server.authorize(request).catch(({ reason }: { reason: string }) => reason);
  };
  const aud = issuer.audience;
  expect(await decide(logoutToken({ aud }))).toBe('unsupported_typ');
  expect(await decide(logoutToken({ aud }, { typ: 'secevent+jwt' }))).toBe('unsupported_typ');
  expect(await decide(logoutToken({ aud }, { typ: undefined }))).toBe('not_an_access_token');
});
