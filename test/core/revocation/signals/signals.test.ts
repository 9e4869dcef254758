import { describe, expect, it } from 'vitest';
import { createMemoryRevocationStore } from '../../../../src/core/revocation/memory-store.ts';
import type { RevocationStore } from '../../../../src/core/revocation/record.ts';
import { createRevocations, readRevocations } from '../../../../src/core/revocation/revocations.ts';
import { openSignals } from '../../../../src/core/revocation/signals/receiver.ts';
import { metadataUrl } from '../../../../src/core/revocation/signals/transmitter.ts';
import { createTestIssuer } from '../../../../src/testing/index.ts';
import { until } from '../../../support/redis-store.ts';
import {
  eventTypes,
  type TestTransmitter,
  type TransmitterBehaviour,
  type TransmitterStream,
} from '../../../support/transmitter.ts';
import { authorization, issuer, open, receive, session, start, user } from './open-stream.ts';

describe('stream management', () => {
  it('a stream that does not exist → created with endpoint, Authorization and events', async () => {
    const { remote, transmitter, events } = await open();
    expect(remote).toMatchObject({
      delivery: {
        method: 'urn:ietf:rfc:8935',
        endpoint_url: 'https://api.example/shared-signals/idp',
        authorization_header: authorization,
      },
      events_requested: [
        'session-revoked',
        'account-disabled',
        'account-purged',
        'credential-compromise',
        'sessions-revoked',
      ].map((name) => eventTypes[name as keyof typeof eventTypes]),
    });
    expect(transmitter.authorizations.filter((value) => value === 'Bearer management').length).toBeGreaterThan(1);
    expect(events).toContainEqual({ type: 'opened', stream: 'idp', needsSubjects: true });
  });

  it('a restart → the stream is read, and not created again', async () => {
    const { transmitter } = await open();
    const again = receive(transmitter);
    await until(() => again.events.some(({ type }) => type === 'opened'));
    expect(transmitter.streams.length).toBe(1);
    expect(transmitter.requests).not.toContain('DELETE /streams');
  });

  it('other events than before → the stream is updated', async () => {
    const { transmitter } = await open();
    const again = receive(transmitter, { events: ['session-revoked'] });
    await until(() => again.events.some(({ type }) => type === 'opened'));
    expect(transmitter.requests).toContain('PATCH /streams');
    expect(transmitter.streams).toMatchObject([{ events_requested: [eventTypes['session-revoked']] }]);
  });

  it('409 for a second stream → the existing one is read and updated', async () => {
    const { transmitter } = await open({
      endpoint: 'https://old.example/shared-signals/idp',
      prepare: ({ behaviour }) => (behaviour.oneStream = true),
    });
    const again = receive(transmitter);
    await until(() => again.events.some(({ type }) => type === 'opened'));
    expect(transmitter.streams).toMatchObject([
      { delivery: { endpoint_url: 'https://api.example/shared-signals/idp' } },
    ]);
  });

  it('client credentials → a token of the token endpoint', async () => {
    const transmitter = await start();
    const credentials = {
      tokenEndpoint: `${new URL(transmitter.url).origin}/token`,
      clientId: 'a:b',
      clientSecret: 'ß',
      scope: 'ssf.manage',
    };
    const receiver = receive(transmitter, { credentials });
    await until(() => receiver.events.some(({ type }) => type === 'opened'));
    expect(transmitter.authorizations).toContain(`Basic ${Buffer.from('a%3Ab:%C3%9F').toString('base64')}`);
    expect(transmitter.authorizations).toContain('Bearer issued');
    expect(transmitter.requests.filter((each) => each === 'POST /token').length).toBe(1);
  });

  it.each([
    ['https://idp.example', 'https://idp.example/.well-known/ssf-configuration'],
    ['https://idp.example/', 'https://idp.example/.well-known/ssf-configuration'],
    ['https://idp.example/realms/main', 'https://idp.example/.well-known/ssf-configuration/realms/main'],
    ['https://idp.example:8443/a/', 'https://idp.example:8443/.well-known/ssf-configuration/a'],
  ])('metadata of %s → %s', (transmitter, url) => {
    expect(metadataUrl(transmitter)).toBe(url);
  });

  it('a transmitter with a path → opened', async () => {
    const { stream } = await open({ path: '/realms/main' });
    expect(stream().state()).toBe('ok');
  });

  it.each([
    ['another issuer', { issuer: 'https://other.example' }],
    ['an http jwks_uri', { jwks_uri: 'http://idp.example/jwks' }],
    ['an http endpoint', { configuration_endpoint: 'http://idp.example/streams' }],
  ])('metadata with %s → not opened', async (_title, metadata) => {
    const transmitter = await start();
    transmitter.behaviour.metadata = metadata;
    const { events, stream } = receive(transmitter);
    await until(() => events.some(({ type }) => type === 'failed'));
    expect(stream().state()).toBe('connecting');
    expect(transmitter.streams).toEqual([]);
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

  it('the same token again → 202', async () => {
    const { transmitter, remote, post } = await open();
    const token = transmitter.event(remote, eventTypes['account-disabled'], user);
    expect([await post(token), await post(token)]).toMatchObject([{ status: 202 }, { status: 202 }]);
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

  it('requested after creation, and the state matches → verified', async () => {
    const { transmitter, parts, post, remote } = await open({
      prepare: ({ behaviour }) => (behaviour.verifies = false),
    });
    await until(() => transmitter.requests.includes('POST /verify'));
    const [record] = [...parts.records()].filter(([, kind]) => kind === 'state');
    const state = record?.[2];
    expect(parts.markOf('stream:idp', 'verified', '')).toBeUndefined();
    const token = transmitter.event(
      remote,
      eventTypes.verification,
      { format: 'opaque', id: remote.stream_id },
      { state },
    );
    expect(await post(token)).toMatchObject({ status: 202 });
    expect(parts.markOf('stream:idp', 'verified', '')).toBeGreaterThan(0);
  });

  it('unsolicited without state → accepted, and does not count', async () => {
    const stream = await open({ prepare: ({ behaviour }) => (behaviour.verifies = false) });
    expect(await verify(stream, {})).toMatchObject({ status: 202 });
    expect(stream.parts.markOf('stream:idp', 'verified', '')).toBeUndefined();
  });

  it('another state → refused', async () => {
    const stream = await open({ prepare: ({ behaviour }) => (behaviour.verifies = false) });
    expect(await verify(stream, { state: 'guessed' })).toMatchObject({ status: 400, body: { err: 'invalid_request' } });
  });

  it('the state of another stream → refused', async () => {
    const store = createMemoryRevocationStore();
    const stream = await open({ store, prepare: ({ behaviour }) => (behaviour.verifies = false) });
    await stream.parts.note('stream:other', 'state', 'foreign', { mark: 1, seconds: 60 });
    expect(await verify(stream, { state: 'foreign' })).toMatchObject({ status: 400 });
  });

  it('a response that reaches another instance → both are verified', async () => {
    const store = createMemoryRevocationStore();
    const transmitter = await start();
    transmitter.behaviour.verifies = false;
    const first = receive(transmitter, { store });
    await until(() => transmitter.requests.includes('POST /verify'));
    const second = receive(transmitter, { store });
    await until(() => second.events.some(({ type }) => type === 'opened'));
    const state = [...first.parts.records()].find(([, kind]) => kind === 'state')?.[2];
    const [remote] = transmitter.streams as [TransmitterStream];
    const about = { format: 'opaque', id: remote.stream_id };
    expect(await second.post(transmitter.event(remote, eventTypes.verification, about, { state }))).toMatchObject({
      status: 202,
    });
    expect(first.parts.markOf('stream:idp', 'verified', '')).toBeGreaterThan(0);
  });

  it('no verification for two periods → stale; tokens get revocation_unknown, and a token with a known cutoff revoked_token', async () => {
    let time = Math.floor(Date.now() / 1000);
    const { stream, reasonOf, send } = await open({
      onStale: 'refuse',
      now: () => time,
      prepare: ({ behaviour }) => (behaviour.verifies = false),
    });
    await send(eventTypes['account-disabled'], { ...user, sub: 'eve' });
    expect([stream().state(), reasonOf()]).toEqual(['ok', undefined]);
    time += 601;
    expect([stream().state(), reasonOf(), reasonOf({ sub: 'eve', iat: time - 700 })]).toEqual([
      'stale',
      'revocation_unknown',
      'revoked_token',
    ]);
    expect(reasonOf({ iss: 'https://other.example/' })).toBeUndefined();
  });

  it('a stale stream, onStale accept → tokens pass', async () => {
    let time = Math.floor(Date.now() / 1000);
    const { stream, reasonOf } = await open({
      now: () => time,
      prepare: ({ behaviour }) => (behaviour.verifies = false),
    });
    time += 601;
    expect([stream().state(), reasonOf()]).toEqual(['stale', undefined]);
  });

  it('a transmitter with a longer interval → its interval counts', async () => {
    let time = Math.floor(Date.now() / 1000);
    const { stream, transmitter } = await open({
      now: () => time,
      prepare: ({ behaviour }) => Object.assign(behaviour, { verifies: false, minVerification: 1000 }),
    });
    await until(() => transmitter.requests.includes('POST /verify'));
    time += 601;
    expect(stream().state()).toBe('ok');
    time += 1500;
    expect(stream().state()).toBe('stale');
  });

  it('stream-updated paused, then enabled within a millisecond → paused, then ok', async () => {
    const time = Math.floor(Date.now() / 1000);
    const stream = await open({ now: () => time });
    const about = { format: 'opaque', id: stream.remote.stream_id };
    expect(await stream.send(eventTypes['stream-updated'], about, { status: 'paused' })).toMatchObject({ status: 202 });
    expect(stream.stream().state()).toBe('paused');
    await stream.send(eventTypes['stream-updated'], about, { status: 'enabled' });
    expect(stream.stream().state()).toBe('ok');
  });

  it('paused by the status endpoint → paused', async () => {
    const { stream } = await open({ prepare: ({ behaviour }) => (behaviour.streamStatus = 'paused') });
    await until(() => stream().state() === 'paused');
  });

  it('a transmitter without verification → push is stale only if it is paused', async () => {
    let time = Math.floor(Date.now() / 1000);
    const { stream, parts } = await open({
      now: () => time,
      prepare: ({ behaviour }) => (behaviour.hasVerification = false),
    });
    await until(() => parts.markOf('stream:idp', 'unverifiable', '') !== undefined);
    time += 10_000;
    expect(stream().state()).toBe('ok');
  });
});

describe('poll', () => {
  const subject = { format: 'complex', user, session };

  it('events → cutoffs, acknowledged after they were stored; a verification too', async () => {
    const { transmitter, remote, reasonOf, parts } = await open({ delivery: 'poll' });
    const jti = transmitter.hold(transmitter.event(remote, eventTypes['session-revoked'], subject));
    await until(() => transmitter.acknowledged.includes(jti));
    expect(reasonOf()).toBe('revoked_token');
    await until(() => parts.markOf('stream:idp', 'verified', '') !== undefined);
  });

  it('an invalid token → setErrs, and the next event still arrives', async () => {
    const { transmitter, remote, reasonOf } = await open({ delivery: 'poll' });
    const bad = transmitter.hold(transmitter.sign(remote, { sub_id: user, events: {} }));
    const good = transmitter.hold(transmitter.event(remote, eventTypes['account-disabled'], user));
    await until(() => transmitter.acknowledged.includes(good));
    expect(transmitter.refused).toEqual({
      [bad]: { err: 'invalid_request', description: 'The security event token is not valid.' },
    });
    expect(reasonOf()).toBe('revoked_token');
  });

  it('a store that fails → not acknowledged until it is stored', async () => {
    const memory = createMemoryRevocationStore();
    let isAway = false;
    const store: RevocationStore = {
      ...memory,
      write: async (records) => (isAway ? Promise.reject(new Error('away')) : memory.write(records)),
    };
    const { transmitter, remote, reasonOf } = await open({ delivery: 'poll', store });
    isAway = true;
    const jti = transmitter.hold(transmitter.event(remote, eventTypes['session-revoked'], subject));
    const polls = transmitter.requests.length;
    await until(() => transmitter.requests.length > polls + 1);
    expect(transmitter.acknowledged).not.toContain(jti);
    isAway = false;
    await until(() => transmitter.acknowledged.includes(jti));
    expect(reasonOf()).toBe('revoked_token');
  }, 30_000);

  it('a transmitter that does not wait, promises more or repeats itself → a poll at most every 5 s', async () => {
    const invalid = (transmitter: TestTransmitter, remote: TransmitterStream) =>
      transmitter.sign(remote, { sub_id: user, events: {} });
    // The poll after a new event acknowledges it at once.
    const cases: [Partial<TransmitterBehaviour>, typeof invalid?][] = [
      [{}],
      [{ moreAvailable: true }],
      [{ repeats: true }, (transmitter, remote) => transmitter.event(remote, eventTypes['session-revoked'], user)],
      [{ repeats: true, moreAvailable: true }, invalid],
    ];
    const startedAt = Date.now();
    const early = cases.map(async ([behaviour, sign]) => {
      const prepare = (prepared: TestTransmitter) =>
        Object.assign(prepared.behaviour, { pollWait: 0, hasVerification: false, ...behaviour });
      const { transmitter, remote } = await open({ delivery: 'poll', prepare });
      if (sign !== undefined) transmitter.hold(sign(transmitter, remote));
      await until(() => transmitter.polls.length >= (sign === undefined ? 3 : 4));
      // A poll that is noticed late lets the next one seem early, so each is compared with the start. Timers may fire early.
      return Math.max(...transmitter.polls.map((at, index) => index - Math.floor((at - startedAt + 50) / 5000)));
    });
    // On a busy host polls are late.
    const most = [0, 0, 1, 1];
    expect((await Promise.all(early)).map((count, index) => Math.max(count, most[index] ?? 0))).toEqual(most);
  }, 30_000);

  it('two instances → one polls', async () => {
    const memory = createMemoryRevocationStore();
    let holder: unknown;
    const take = (name: string): boolean => {
      holder ??= name;
      return holder === name;
    };
    const storeOf = (name: string): RevocationStore => ({ ...memory, lease: async () => take(name) });
    const transmitter = await start();
    const first = receive(transmitter, { delivery: 'poll', store: storeOf('first') });
    await until(() => transmitter.requests.includes('POST /poll'));
    const second = receive(transmitter, { delivery: 'poll', store: storeOf('second') });
    await until(() => second.events.some(({ type }) => type === 'opened'));
    const [remote] = transmitter.streams as [TransmitterStream];
    const jti = transmitter.hold(transmitter.event(remote, eventTypes['session-revoked'], subject));
    await until(() => transmitter.acknowledged.includes(jti));
    expect([first.outcomes().includes('cutoff'), second.outcomes()]).toEqual([true, []]);
    expect([first.reasonOf(), second.reasonOf()]).toEqual(['revoked_token', 'revoked_token']);
  });
});

it.each([
  ['no streams', {}, 'streams'],
  ['a bad name', { 'A b': {} }, 'name'],
  ['an unknown member', { idp: { foo: 1 } }, 'foo'],
  ['http', { idp: { transmitter: 'http://idp.example' } }, 'transmitter'],
  ['no issuer', { idp: { transmitter: 'https://idp.example', delivery: 'poll' } }, 'issuer'],
  ['no delivery', { idp: { transmitter: 'https://idp.example', issuer } }, 'delivery'],
  [
    'push without endpoint',
    { idp: { transmitter: 'https://idp.example', issuer, delivery: 'push', authorization } },
    'endpoint',
  ],
  [
    'push without Authorization',
    { idp: { transmitter: 'https://idp.example', issuer, delivery: 'push', endpoint: 'https://x.example' } },
    'authorization',
  ],
  [
    'an unknown event',
    { idp: { transmitter: 'https://idp.example', issuer, delivery: 'poll', events: ['logout'] } },
    'events',
  ],
  [
    'verifyEvery 0',
    { idp: { transmitter: 'https://idp.example', issuer, delivery: 'poll', verifyEvery: 0 } },
    'verifyEvery',
  ],
  [
    'another onStale',
    { idp: { transmitter: 'https://idp.example', issuer, delivery: 'poll', onStale: 'x' } },
    'onStale',
  ],
])('streams with %s → TypeError', (_title, streams, name) => {
  const parts = readRevocations('test', createRevocations());
  expect(() => openSignals({ streams: streams as never }, parts)).toThrow(name);
});
