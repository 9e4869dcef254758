import { afterEach, describe, expect, it, vi } from 'vitest';
import { createCutoffs } from '../../../src/core/revocation/cutoffs.ts';
import { createMemoryRevocationStore } from '../../../src/core/revocation/memory-store.ts';
import {
  type CutoffEvent,
  encodeMark,
  eventOfMark,
  maxRecords,
  readRecord,
  timeOfMark,
} from '../../../src/core/revocation/record.ts';
import {
  type Cutoff,
  createRevocations,
  type EventCutoff,
  type RevocationsOptions,
  readRevocations,
} from '../../../src/core/revocation/revocations.ts';

const issuer = 'https://idp.example/';
const start = 1_800_000_000;

afterEach(() => void vi.restoreAllMocks());

function open(options: RevocationsOptions = {}) {
  let time = start;
  const { now: steady } = performance;
  const revocations = createRevocations({ now: () => time, ...options });
  const parts = readRevocations('test', revocations);
  const check = (claims: object) => {
    const token = { iss: issuer, sub: 'ann', exp: time + 60, iat: time - 60, ...claims };
    return parts.check(token)?.reason ?? (parts.doubtOf(token) === undefined ? undefined : 'doubtful');
  };
  const set = (cutoff: Partial<EventCutoff>) =>
    parts.set([{ issuer, kind: 'sub', value: 'ann', before: time, event: 'logout', ...cutoff }]);
  const advance = (seconds: number): void => {
    time += seconds;
    vi.spyOn(performance, 'now').mockImplementation(() => steady.call(performance) + (time - start) * 1000);
  };
  return { revocations, parts, check, set, advance, now: () => time };
}

describe('tokens that a cutoff refuses', () => {
  const before = start - 100;
  it.each([
    ['sub, iat before', { kind: 'sub', value: 'ann' }, { iat: before - 1 }, 'revoked_token'],
    ['sub, iat equal', { kind: 'sub', value: 'ann' }, { iat: before }, 'revoked_token'],
    ['sub, iat less than a millisecond before', { before: before + 0.0004 }, { iat: before + 0.0003 }, 'revoked_token'],
    ['sub, iat after', { kind: 'sub', value: 'ann' }, { iat: before + 1 }, undefined],
    ['sub, iat a fraction after', { kind: 'sub', value: 'ann' }, { iat: before + 0.002 }, undefined],
    ['another sub', { kind: 'sub', value: 'ann' }, { sub: 'bob', iat: before }, undefined],
    [
      'sub of another issuer',
      { kind: 'sub', value: 'ann', issuer: 'https://other.example/' },
      { iat: before },
      undefined,
    ],
    ['sub in another case', { kind: 'sub', value: 'ann' }, { sub: 'Ann', iat: before }, undefined],
    ['sid, iat after', { kind: 'sid', value: 's1' }, { sid: 's1', iat: before + 50 }, 'revoked_token'],
    ['another sid', { kind: 'sid', value: 's1' }, { sid: 's2' }, undefined],
    ['no sid', { kind: 'sid', value: 's1' }, {}, undefined],
    ['jti, iat after', { kind: 'jti', value: 't1' }, { jti: 't1', iat: before + 50 }, 'revoked_token'],
    ['jti that is a number', { kind: 'jti', value: '17' }, { jti: 17 }, 'revoked_token'],
    ['client_id', { kind: 'client_id', value: 'app' }, { client_id: 'app', iat: before }, 'revoked_token'],
    ['client_id, iat after', { kind: 'client_id', value: 'app' }, { client_id: 'app', iat: before + 1 }, undefined],
    ['azp without client_id', { kind: 'client_id', value: 'app' }, { azp: 'app', iat: before }, 'revoked_token'],
    [
      'azp next to another client_id',
      { kind: 'client_id', value: 'app' },
      { client_id: 'b', azp: 'app', iat: before },
      undefined,
    ],
    ['sub without iat', { kind: 'sub', value: 'ann' }, { iat: undefined }, 'doubtful'],
    ['sid without iat', { kind: 'sid', value: 's1' }, { sid: 's1', iat: undefined }, 'revoked_token'],
    ['sid that is an object', { kind: 'sid', value: '[object Object]' }, { sid: {} }, undefined],
  ] as const)('%s → %j', async (_title, cutoff, claims, expected) => {
    const { set, check } = open();
    await set({ before, ...cutoff });
    expect(check(claims)).toBe(expected);
  });

  it('names the event and its time, never whose it is', async () => {
    const { set, parts } = open();
    await set({ event: 'account-disabled', before: start - 5 });
    const refusal = parts.check({ iss: issuer, sub: 'ann', exp: start + 60, iat: start - 60 });
    expect(refusal).toMatchObject({
      reason: 'revoked_token',
      context: { revocation: 'account-disabled', by: 'sub', since: new Date((start - 5) * 1000).toISOString() },
    });
    expect(JSON.stringify(refusal)).not.toContain('ann');
  });
});

describe('order of arrival', () => {
  it('an older event after a newer one → the newer one holds', async () => {
    const { set, check } = open();
    await set({ before: start - 10 });
    await set({ before: start - 500 });
    expect(check({ iat: start - 10 })).toBe('revoked_token');
  });

  it('a login after the cutoff → admitted', async () => {
    const { set, check, advance } = open();
    await set({});
    advance(10);
    expect(check({ iat: start + 9 })).toBeUndefined();
  });

  it.each([
    ['milliseconds', start * 1000],
    ['an hour ahead', start + 3600],
  ])('a time in the future (%s) → becomes now', async (_title, before) => {
    const { set, check, advance } = open();
    await set({ before });
    expect(check({ iat: start })).toBe('revoked_token');
    advance(10);
    expect(check({ iat: start + 1 })).toBeUndefined();
  });

  it('a time ahead within the clock tolerance → unchanged', async () => {
    const { set, check } = open();
    await set({ before: start + 4 });
    expect(check({ iat: start + 4 })).toBe('revoked_token');
  });
});

describe('lifetime of tokens and cutoffs', () => {
  it.each([
    [86_400, undefined],
    [86_401, 'token_lifetime_too_long'],
  ])('lifetime of %i s → %s', (lifetime, expected) => {
    const { check } = open();
    expect(check({ iat: start, exp: start + lifetime })).toBe(expected);
  });

  it('token without iat → no lifetime', () =>
    expect(open().check({ iat: undefined, exp: start + 1e9 })).toBeUndefined());

  it('a cutoff outlives every token that it refuses', async () => {
    const { set, check, advance } = open({ maxTokenLifetime: 600 });
    await set({});
    const token = { iat: start, exp: start + 600 };
    for (let seconds = 0; seconds < 605; seconds += 11) {
      await set({ kind: 'jti', value: `other-${seconds}` });
      expect(check(token)).toBe('revoked_token');
      advance(11);
    }
  });

  it('an event that arrives late → retained from its receipt', async () => {
    const { set, check, advance } = open({ maxTokenLifetime: 600 });
    await set({ kind: 'sid', value: 's', before: start - 100_000 });
    advance(599);
    await set({ kind: 'jti', value: 'other' });
    expect(check({ sid: 's' })).toBe('revoked_token');
  });

  it('a clock that is ahead for a while → removes no cutoff', async () => {
    let ahead = 0;
    const { set, check } = open({ now: () => start + ahead });
    await set({});
    ahead = 2 * 86_400;
    for (let i = 0; i < 20; i++) await set({ value: `other-${i}` });
    ahead = 0;
    expect(check({ iat: start })).toBe('revoked_token');
  });

  it('cutoffs whose retention has ended → removed, and those that were renewed stay', async () => {
    const { set, revocations, check, advance } = open({ maxTokenLifetime: 600 });
    for (let i = 0; i < 100; i++) await set({ value: `user-${i}` });
    advance(400);
    await set({ value: 'user-7' });
    advance(300);
    for (let i = 0; i < 20; i++) await set({ value: `late-${i}` });
    expect([revocations.status().cutoffs, check({ sub: 'user-7', iat: start + 400 })]).toEqual([21, 'revoked_token']);
    advance(400);
    for (let i = 0; i < 20; i++) await set({ value: `later-${i}` });
    expect(check({ sub: 'user-7', iat: start + 400, exp: start + 900 })).toBeUndefined();
  });
});

it('bounds: 1,000,000 cutoffs → the next is rejected, and none is evicted', async () => {
  const store = createMemoryRevocationStore();
  const { set, revocations, check } = open({ store });
  const [mark, until, batch] = [encodeMark(start, 'logout'), start + 86_400, 10_000];
  for (let at = 0; at < maxRecords; at += batch) {
    await store.write(Array.from({ length: batch }, (_, i) => [issuer, 'sid', `s${at + i}`, mark, until] as const));
  }
  await expect(set({ value: 'one too many' })).rejects.toThrow('no other is stored');
  await expect(set({ kind: 'sid', value: 's5' })).resolves.toBeUndefined();
  expect(revocations.status()).toMatchObject({ cutoffs: maxRecords, rejected: 1 });
  expect([check({ sid: 's0' }), check({ sid: `s${maxRecords - 1}` })]).toEqual(['revoked_token', 'revoked_token']);
});

describe('contact', () => {
  it('another createRevocations() of one memory store → knows what is stored', async () => {
    const store = createMemoryRevocationStore();
    const first = open({ store });
    await first.set({});
    const second = open({ store });
    expect(second.check({})).toBe('revoked_token');
    await second.set({ value: 'bob' });
    expect(first.check({ sub: 'bob' })).toBe('revoked_token');
    await expect(second.revocations.ready()).resolves.toBeUndefined();
    second.revocations.close();
    await first.set({ value: 'eve' });
    expect(second.check({ sub: 'eve' })).toBeUndefined();
  });

  it('a store that fails → the cutoff is not reported as set', async () => {
    const store = { ...createMemoryRevocationStore(), write: async () => Promise.reject(new Error('away')) };
    const { set, check } = open({ store });
    await expect(set({})).rejects.toThrow('away');
    expect(check({})).toBeUndefined();
  });
});

describe('revoke', () => {
  it.each([
    ['sub', { sub: 'ann' }, {}],
    ['sub with a time', { sub: 'ann', before: start - 60 }, {}],
    ['sid', { sid: 's' }, { sid: 's' }],
    ['client_id', { client_id: 'app' }, { client_id: 'app' }],
    ['jti', { jti: 'j' }, { jti: 'j' }],
  ])('%s → revoked_token', async (_title, cutoff, claims) => {
    const { revocations, check } = open();
    await revocations.revoke({ issuer, ...cutoff });
    expect(check(claims)).toBe('revoked_token');
  });

  it.each([0, 0.999])('without a time, %f s into a second → a login in this second is admitted', async (part) => {
    const { revocations, check } = open({ now: () => start + part });
    await revocations.revoke({ issuer, sub: 'ann' });
    expect([check({ iat: start - 1 }), check({ iat: start })]).toEqual(['revoked_token', undefined]);
  });

  it.each([
    ['nothing', undefined],
    ['no key', { issuer }],
    ['two keys', { issuer, sub: 'ann', sid: 's' }],
    ['another key', { issuer, email: 'ann@example' }],
    ['an empty value', { issuer, sub: '' }],
    ['a long value', { issuer, sub: 'a'.repeat(1025) }],
    ['a value that is not a string', { issuer, sub: 17 }],
    ['no issuer', { sub: 'ann' }],
    ['an issuer that no store would return', { issuer: `https://${'a'.repeat(4096)}/`, sub: 'ann' }],
    ['a time that is a string', { issuer, sub: 'ann', before: '2026-01-01' }],
    ['a negative time', { issuer, sub: 'ann', before: -1 }],
  ])('%s → TypeError without the value', async (_title, cutoff) => {
    const error = await open()
      .revocations.revoke(cutoff as unknown as Cutoff)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).not.toContain('ann');
  });
});

it.each([
  ['an unknown option', { lifetime: 1 }],
  ['a store without methods', { store: {} }],
  ['a lifetime of 0', { maxTokenLifetime: 0 }],
  ['a lifetime of two years', { maxTokenLifetime: 2 * 366 * 86_400 }],
  ['a negative tolerance', { clockTolerance: -1 }],
  ['another stale', { stale: 'maybe' }],
  ['a clock that is not a function', { now: 1 }],
])('options with %s → TypeError', (_title, options) =>
  expect(() => createRevocations(options as unknown as RevocationsOptions)).toThrow(TypeError),
);

describe('records', () => {
  it('a mark → its time and event', () => {
    const mark = encodeMark(start + 0.25, 'credential-compromise');
    expect([timeOfMark(mark), eventOfMark(mark)]).toEqual([(start + 0.25) * 1000, 'credential-compromise']);
    expect(Number.isSafeInteger(encodeMark(1e11, 'assurance-level-change'))).toBe(true);
    expect(eventOfMark(15)).toBe('revoke' satisfies CutoffEvent);
  });

  it.each([
    [['i', 'sub', 'a', 1, 2], true],
    [['i', 'sub', 'a', 1], false],
    [['i', 'sub', 'a', '1', 2], false],
    [['i', 'sub', 7, 1, 2], false],
    ['text', false],
  ])('%j → readable %s', (value, expected) => expect(readRecord(value) !== undefined).toBe(expected));

  it('a kind of a later release → ignored', () => {
    const cutoffs = createCutoffs(60);
    cutoffs.add([issuer, 'tenant', 'a', 1, start + 60], start);
    expect(cutoffs.size()).toBe(0);
  });
});
