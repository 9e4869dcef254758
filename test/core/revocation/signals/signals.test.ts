import { describe, expect, it } from 'vitest';
import { createMemoryRevocationStore } from '../../../../src/core/revocation/memory-store.ts';
import { encodeMark } from '../../../../src/core/revocation/record.ts';
import { createRevocations, readRevocations } from '../../../../src/core/revocation/revocations.ts';
import { openSignals } from '../../../../src/core/revocation/signals/receiver.ts';
import { metadataUrl } from '../../../../src/core/revocation/signals/stream.ts';
import { createTestIssuer } from '../../../../src/testing/index.ts';
import { until } from '../../../../tools/shared/network.js';
import { eventTypes } from '../../../support/transmitter.ts';
import { authorization, issuer, open, receive, session, start, user } from './open-stream.ts';

describe('metadata of the transmitter', () => {
  it.each([
    ['https://idp.example', 'https://idp.example/.well-known/ssf-configuration'],
    ['https://idp.example/', 'https://idp.example/.well-known/ssf-configuration'],
    ['https://idp.example/realms/main', 'https://idp.example/.well-known/ssf-configuration/realms/main'],
    ['https://idp.example:8443/a/', 'https://idp.example:8443/.well-known/ssf-configuration/a'],
  ])('metadata of %s → %s', (transmitter, url) => expect(metadataUrl(transmitter)).toBe(url));

  it('a transmitter with a path → opened', async () => {
    const { stream } = await open({ path: '/realms/main' });
    expect(stream().state()).toBe('ok');
  });

  it.each([
    ['another issuer', { issuer: 'https://other.example' }],
    ['an http jwks_uri', { jwks_uri: 'http://idp.example/jwks' }],
  ])('metadata with %s → not opened', async (_title, metadata) => {
    const transmitter = await start();
    transmitter.behaviour.metadata = metadata;
    const { events, stream } = receive(transmitter);
    await until(() => events.some(({ type }) => type === 'failed'));
    expect(stream().state()).toBe('connecting');
    expect(transmitter.requests).not.toContain('GET /jwks');
  });

  it('a transmitter that is down → retried until it is up', async () => {
    const transmitter = await start();
    transmitter.behaviour.status = 503;
    const { events, post, stream } = receive(transmitter);
    await until(() => events.some(({ type }) => type === 'failed'));
    expect(stream().state()).toBe('connecting');
    expect(await post('anything')).toMatchObject({ status: 503 });
    delete transmitter.behaviour.status;
    await until(() => stream().state() === 'ok');
  });
});

describe('pushed events that set cutoffs', () => {
  it.each([
    ['session-revoked', session, {}, 'revoked_token'],
    ['session-revoked of another session', { format: 'opaque', id: 's2' }, {}, undefined],
    ['account-disabled', user, { sid: 's9' }, 'revoked_token'],
    ['account-purged', user, {}, 'revoked_token'],
    ['credential-compromise', user, {}, 'revoked_token'],
    ['sessions-revoked', user, {}, 'revoked_token'],
    ['account-disabled of another issuer', { ...user, iss: 'https://other.example/' }, {}, undefined],
    ['account-disabled by opaque', { format: 'opaque', id: 'ann' }, {}, 'revoked_token'],
    [
      'session-revoked by jwt_id',
      { format: 'jwt_id', iss: issuer, jti: 't1' },
      { jti: 't1', sub: 'bob' },
      'revoked_token',
    ],
    [
      'session-revoked by jwt_id of another issuer',
      { format: 'jwt_id', iss: 'https://x/', jti: 't1' },
      { jti: 't1' },
      undefined,
    ],
    ['session-revoked with user and session', { format: 'complex', user, session }, { sub: 'bob' }, 'revoked_token'],
    [
      'session-revoked with user and session: another session of the user',
      { format: 'complex', user, session },
      { sid: 's2' },
      undefined,
    ],
    ['session-revoked with a user only', { format: 'complex', user }, { sid: 's2' }, 'revoked_token'],
  ])('%s → 202', async (title, subject, claims, reason) => {
    const { send, reasonOf } = await open();
    const name = title.split(' ')[0] as keyof typeof eventTypes;
    // As a subject of a session, an opaque identifier is within a complex one.
    const sent =
      subject === session || title.endsWith('another session') ? { format: 'complex', session: subject } : subject;
    expect(await send(eventTypes[name], sent)).toMatchObject({ status: 202 });
    expect(reasonOf(claims)).toBe(reason);
  });

  it.each(['credential-change', 'token-claims-change', 'assurance-level-change'] as const)(
    '%s → only if it is listed',
    async (name) => {
      const usual = await open();
      expect(await usual.send(eventTypes[name], user)).toMatchObject({ status: 202 });
      expect([usual.reasonOf(), usual.outcomes().at(-1)]).toEqual([undefined, 'event']);
      const listed = await open({ events: [name] });
      expect(await listed.send(eventTypes[name], user)).toMatchObject({ status: 202 });
      expect(listed.reasonOf()).toBe('revoked_token');
    },
  );

  it('account-enabled after account-disabled → the cutoff stays', async () => {
    const { send, reasonOf } = await open();
    await send(eventTypes['account-disabled'], user);
    expect(await send(eventTypes['account-enabled'], user)).toMatchObject({ status: 202 });
    expect(reasonOf()).toBe('revoked_token');
  });

  it.each([
    ['event_timestamp', -100, 1000, -100],
    ['iat without it', undefined, -50, -50],
    ['now for milliseconds', Math.floor(Date.now()), -50, 0],
    ['now for a time ahead', 3600, -50, 0],
  ])('before = %s', async (_title, timestamp, iat, expected) => {
    const { send, reasonOf } = await open();
    const now = Math.floor(Date.now() / 1000);
    const at = timestamp === undefined ? undefined : timestamp > 1e9 ? timestamp : now + timestamp;
    await send(eventTypes['account-disabled'], user, { event_timestamp: at }, { iat: now + Math.min(iat, 0) });
    expect(reasonOf({ iat: now + expected })).toBe('revoked_token');
    expect(reasonOf({ iat: now + expected + 3 })).toBeUndefined();
  });

  it.each([
    ['email', { format: 'email', email: 'ann@example' }, 'subject_unsupported'],
    ['account', { format: 'account', uri: 'acct:ann' }, 'subject_unsupported'],
    ['aliases', { format: 'aliases', identifiers: [user] }, 'subject_unsupported'],
    ['complex without user and session', { format: 'complex', device: user }, 'subject_unsupported'],
    ['an opaque identifier that is a number', { format: 'opaque', id: 7 }, 'subject_unsupported'],
    ['another issuer', { ...user, iss: 'https://other.example/' }, 'subject_foreign'],
  ])('subject %s → 202, counted', async (_title, subject, outcome) => {
    const { send, outcomes, revocations } = await open();
    const before = revocations.status().cutoffs;
    expect(await send(eventTypes['account-disabled'], subject)).toMatchObject({ status: 202 });
    expect(outcomes().at(-1)).toBe(outcome);
    expect(revocations.status().cutoffs).toBeLessThanOrEqual(before + 1);
  });

  it('a store that fails → 503, and the retry is accepted', async () => {
    const memory = createMemoryRevocationStore();
    let isAway = false;
    const store = {
      ...memory,
      write: async (records: never) => (isAway ? Promise.reject(new Error('away')) : memory.write(records)),
    };
    const { transmitter, remote, post, reasonOf } = await open({ store });
    const token = transmitter.event(remote, eventTypes['account-disabled'], user);
    isAway = true;
    expect(await post(token)).toMatchObject({ status: 503 });
    isAway = false;
    expect(await post(token)).toMatchObject({ status: 202 });
    expect(reasonOf()).toBe('revoked_token');
  });
});

describe('refused pushes', () => {
  const other = createTestIssuer();
  const kinds: readonly (readonly [
    string,
    Readonly<Record<string, unknown>>,
    Readonly<Record<string, unknown>>,
    string,
  ])[] = [
    ['another iss', { iss: 'https://other.example/' }, {}, 'invalid_issuer'],
    ['another aud', { aud: 'https://other.example/' }, {}, 'invalid_audience'],
    ['no aud', { aud: undefined }, {}, 'invalid_audience'],
    ['typ JWT', {}, { typ: 'JWT' }, 'invalid_request'],
    ['no typ', {}, { typ: undefined }, 'invalid_request'],
    ['no iat', { iat: undefined }, {}, 'invalid_request'],
    ['no jti', { jti: undefined }, {}, 'invalid_request'],
    ['a sub', { sub: 'ann' }, {}, 'invalid_request'],
    ['an exp', { exp: 9_999_999_999 }, {}, 'invalid_request'],
    ['no sub_id', { sub_id: undefined }, {}, 'invalid_request'],
    ['no event', { events: {} }, {}, 'invalid_request'],
    [
      'two events',
      { events: { [eventTypes['account-disabled']]: {}, [eventTypes['account-purged']]: {} } },
      {},
      'invalid_request',
    ],
    ['an event that is a string', { events: { [eventTypes['account-disabled']]: 'x' } }, {}, 'invalid_request'],
    ['crit', {}, { crit: ['exp'] }, 'invalid_request'],
    ['an unknown kid', {}, { kid: 'unknown' }, 'invalid_key'],
  ];

  it('each gets 400 with its code, and sets no cutoff', async () => {
    const { transmitter, remote, post, reasonOf } = await open();
    const claims = { sub_id: user, events: { [eventTypes['account-disabled']]: {} } };
    const results: unknown[] = [];
    for (const [title, changed, header] of kinds)
      results.push([title, await post(transmitter.sign(remote, { ...claims, ...changed }, header))]);
    const body = (err: string) => ({ err, description: 'The security event token is not valid.' });
    expect(results).toEqual(kinds.map(([title, , , err]) => [title, { status: 400, body: body(err) }]));
    const forged = other.token(
      { iss: transmitter.url, aud: remote.aud, client_id: undefined, sub: undefined, exp: undefined, ...claims },
      { typ: 'secevent+jwt', kid: 'transmitter-key' },
    );
    expect(await post(forged)).toMatchObject({ status: 400, body: { err: 'invalid_key' } });
    expect(reasonOf()).toBeUndefined();
  });

  it.each([
    ['another Authorization', { authorization: 'Bearer other' }, 'authentication_failed'],
    ['an empty Authorization', { authorization: '' }, 'authentication_failed'],
    ['another content type', { 'content-type': 'application/json' }, 'invalid_request'],
  ])('%s → 400 %s', async (_title, headers, err) => {
    const { transmitter, remote, post } = await open();
    const token = transmitter.event(remote, eventTypes['account-disabled'], user);
    expect(await post(token, headers)).toMatchObject({ status: 400, body: { err } });
  });

  it('a large body → 400; an unknown stream → 404; GET → 405', async () => {
    const { post } = await open();
    expect(await post('a'.repeat(70_000))).toMatchObject({ status: 400 });
    expect(await post('a', {}, '/shared-signals/other')).toMatchObject({ status: 404 });
    expect(await post('a', {}, '/shared-signals/idp/x')).toMatchObject({ status: 404 });
    expect(await post('a', {}, '/shared-signals/idp', 'GET')).toMatchObject({ status: 405 });
  });
});

describe('verification', () => {
  const verify = async (stream: Awaited<ReturnType<typeof open>>, event: object) =>
    stream.send(eventTypes.verification, { format: 'opaque', id: stream.remote.stream_id }, event);

  it.each([{}, { state: 'of the administrator' }])('%j → 202, and the stream is ok for two periods', async (event) => {
    let time = Math.floor(Date.now() / 1000);
    const stream = await open({ verifyEvery: 300, now: () => time });
    time += 600;
    expect(stream.stream().state()).toBe('ok');
    time += 1;
    expect([stream.stream().state(), stream.reasonOf()]).toEqual(['stale', undefined]);
    expect(await verify(stream, event)).toMatchObject({ status: 202 });
    time += 600;
    expect(stream.stream().state()).toBe('ok');
    time += 1;
    expect([stream.stream().state(), stream.outcomes()]).toEqual(['stale', ['verification']]);
  });

  it('no verifyEvery → never stale, and nothing is stored', async () => {
    let time = Math.floor(Date.now() / 1000);
    const stream = await open({ now: () => time });
    expect(await verify(stream, {})).toMatchObject({ status: 202 });
    time += 1_000_000;
    expect([stream.stream().state(), stream.revocations.status().cutoffs]).toEqual(['ok', 0]);
  });

  it('an event that reaches another instance → both are verified', async () => {
    let time = Math.floor(Date.now() / 1000);
    const options = { store: createMemoryRevocationStore(), verifyEvery: 300, now: () => time };
    const first = await open(options);
    const second = receive(first.transmitter, options);
    time += 601;
    expect([first.stream().state(), second.stream().isStale()]).toEqual(['stale', true]);
    expect(await verify(first, {})).toMatchObject({ status: 202 });
    expect([first.stream().state(), second.stream().isStale()]).toEqual(['ok', false]);
  });

  it('a time in the future in the store → becomes now', async () => {
    let time = Math.floor(Date.now() / 1000);
    const memory = createMemoryRevocationStore();
    const { parts, stream } = await open({ store: memory, verifyEvery: 300, now: () => time });
    await memory.write([['stream:idp', 'verified', '', encodeMark(time + 86_400, 'revoke'), time + 100_000]]);
    expect(parts.markOf('stream:idp', 'verified', '')).toBe(encodeMark(time, 'revoke'));
    time += 601;
    expect(stream().state()).toBe('stale');
  });
});

const valid = { transmitter: 'https://idp.example', issuer, audience: 'a', authorization };

it.each([
  ['no streams', {}, 'streams'],
  ['a bad name', { 'A b': {} }, 'name'],
  ['an unknown member', { idp: { foo: 1 } }, 'foo'],
  ['http', { idp: { ...valid, transmitter: 'http://idp.example' } }, 'transmitter'],
  ['no issuer', { idp: { ...valid, issuer: '' } }, 'issuer'],
  ['a list as the audience', { idp: { ...valid, audience: ['a'] } }, 'audience'],
  ['no Authorization', { idp: { ...valid, authorization: '' } }, 'authorization'],
  ['an unknown event', { idp: { ...valid, events: ['logout'] } }, 'events'],
  ['verifyEvery 0', { idp: { ...valid, verifyEvery: 0 } }, 'verifyEvery'],
  ['verifyEvery of two days', { idp: { ...valid, verifyEvery: 172_800 } }, 'verifyEvery'],
  ['delivery', { idp: { ...valid, delivery: 'push' } }, 'delivery was removed: every stream is pushed'],
  ['endpoint', { idp: { ...valid, endpoint: 'https://a.example' } }, 'endpoint was removed: register the URL'],
  ['credentials', { idp: { ...valid, credentials: {} } }, 'credentials was removed: create the stream'],
  ['onStale', { idp: { ...valid, onStale: 'refuse' } }, 'onStale was removed: alert on'],
])('streams with %s → TypeError', (_title, streams, name) => {
  const parts = readRevocations('test', createRevocations());
  expect(() => openSignals({ streams: streams as never }, parts)).toThrow(name);
});
