import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createNonces } from '../../../src/core/dpop/nonce.ts';
import { createMemoryReplayStore, replayName } from '../../../src/core/dpop/replay.ts';
import { AccessError } from '../../../src/core/failures.ts';

const jkt = 'A'.repeat(43);
const start = 1_700_000_000;

function reasonOf(action: () => unknown): string | undefined {
  const outcome = action();
  return outcome instanceof AccessError ? outcome.reason : undefined;
}

/** A store with a clock that the test sets. */
function createStore(capacity = 1_000_000) {
  const clock = { now: start };
  return { clock, store: createMemoryReplayStore({ capacity, now: () => clock.now, since: 0 }) };
}

describe('a proof that may have been used before the store was there', () => {
  const nonces = createNonces({ secret: 'a secret of thirty-two characters' });
  const made = (iat: number): number => iat + 300;

  function open(clock: { now: number }, since?: number) {
    const store = createMemoryReplayStore({
      capacity: 1000,
      now: () => clock.now,
      ...(since !== undefined && { since }),
    });
    const witness = (iat: number, nonce?: string) =>
      reasonOf(() =>
        store.witness(jkt, `${iat}`, made(iat), nonce === undefined ? undefined : () => nonces.read(nonce, clock.now)),
      );
    return { store, witness };
  }

  it.each([
    ['in the second of the start', 0, 'proof_before_start'],
    ['two minutes before', -120, 'proof_before_start'],
    ['in the next second', 1, undefined],
  ])('made %s → %s', (_name, offset, reason) =>
    expect(open({ now: start + 0.7 }).witness(start + (offset ?? 0))).toBe(reason),
  );

  it('with a nonce of the same store → accepted, and remembered', () => {
    const { store, witness } = open({ now: start });
    const nonce = nonces.issue(start, store.generation);
    expect(witness(start - 120, nonce)).toBeUndefined();
    expect(store.witness(jkt, `${start - 120}`, made(start - 120), () => nonces.read(nonce, start))).toBe(false);
  });

  it('with a nonce of the previous store, under the same secret → a new one is required', () => {
    const clock = { now: start };
    const before = open(clock);
    const nonce = nonces.issue(start, before.store.generation);
    expect(before.witness(start, nonce)).toBeUndefined();
    expect(open(clock).witness(start, nonce)).toBe('proof_before_start');
  });

  it('with a nonce of another instance: issued later → accepted; earlier, or ahead of this clock → a new one is required', () => {
    const { witness } = open({ now: start + 5 });
    expect(witness(start, nonces.issue(start + 6, 1))).toBeUndefined();
    expect(witness(start + 1, nonces.issue(start + 5, 1))).toBe('proof_before_start');
    expect(witness(start + 2, nonces.issue(start + 7, 1))).toBe('proof_before_start');
  });

  it('since: 0 → every proof is accepted; a given time → only later proofs are', () => {
    expect(open({ now: start }, 0).witness(start - 200)).toBeUndefined();
    expect(open({ now: start }, start - 100).witness(start - 100)).toBe('proof_before_start');
    expect(open({ now: start }, start - 100).witness(start - 99)).toBeUndefined();
  });

  it('created a minute before its first use → the time of creation', () => {
    const clock = { now: start };
    const { witness } = open(clock);
    clock.now += 60;
    expect([witness(start), witness(start + 1)]).toEqual(['proof_before_start', undefined]);
  });

  it('created without time, as at module top on workerd → the time of its first use', () => {
    const clock = { now: 0 };
    const { witness } = open(clock);
    clock.now = start;
    expect(witness(start)).toBe('proof_before_start');
    clock.now += 60;
    expect(witness(start + 1)).toBeUndefined();
  });

  it.each([Number.NaN, -1, Number.POSITIVE_INFINITY])('since: %s → TypeError', (since) =>
    expect(() => createMemoryReplayStore({ since })).toThrow('since: write seconds since the epoch'),
  );
});

describe('a replay store in memory', () => {
  it('a proof seen first → true, seen again → false', () => {
    const { store } = createStore();
    expect([store.witness(jkt, 'a', start + 300), store.witness(jkt, 'a', start + 300)]).toEqual([true, false]);
    expect([store.witness(jkt, 'b', start + 300), store.size]).toEqual([true, 2]);
  });

  it.each([
    ['another key', 'B'.repeat(43), 'a'],
    ['another case', jkt, 'A'],
    ['a longer jti', jkt, 'aa'],
    ['characters moved from one to the other', `${jkt}a`, ''],
    ['characters moved the other way', jkt.slice(1), 'Aa'],
    ['a jti of 256 characters', jkt, 'a'.repeat(256)],
    ['an emoji', jkt, '🔑'],
  ])('equal except for %s → seen first', (_name, otherJkt, jti) => {
    const { store } = createStore();
    store.witness(jkt, 'a', start + 300);
    expect(store.witness(otherJkt, jti, start + 300)).toBe(true);
    expect(store.witness(otherJkt, jti, start + 300)).toBe(false);
  });

  it('the same jti in a proof of another time → false', () => {
    const { store } = createStore();
    expect([store.witness(jkt, 'a', start + 300), store.witness(jkt, 'a', start + 310)]).toEqual([true, false]);
    expect(store.witness(jkt, 'a', start + 20)).toBe(false);
  });

  it.each([
    ['before its end', false, 300, 299.999],
    ['at its end', false, 300, 300],
    ['at its end within a second', false, 300.5, 300.5],
    ['in the second of its end', false, 300, 300.999],
    ['in the next second', true, 300, 301],
    ['an hour later', true, 300, 3600],
  ])('seen again %s → %s', (_name, first, until, later) => {
    const { store, clock } = createStore();
    store.witness(jkt, 'a', start + until);
    clock.now = start + later;
    expect(store.witness(jkt, 'a', clock.now + 300)).toBe(first);
    expect(store.size).toBe(1);
  });

  it('proofs whose times are not in order → each ends at its own', () => {
    const { store, clock } = createStore();
    const lifetimes = [300, 5, 330, 1, 299, 5, 0, 42];
    for (const [index, seconds] of lifetimes.entries()) store.witness(jkt, `${index}`, start + seconds);
    for (const later of [0, 1, 2, 5, 6, 42, 43, 299, 300, 301, 330, 331]) {
      clock.now = start + later;
      expect(store.size).toBe(lifetimes.filter((seconds) => seconds >= later).length);
    }
  });

  it('full → replay_store_full, also for what was refused before; what is known stays known', () => {
    const { store, clock } = createStore(3);
    for (const jti of ['a', 'b', 'c']) expect(store.witness(jkt, jti, start + 10)).toBe(true);
    expect(reasonOf(() => store.witness(jkt, 'd', start + 300))).toBe('replay_store_full');
    expect(reasonOf(() => store.witness(jkt, 'd', start + 300))).toBe('replay_store_full');
    expect([store.witness(jkt, 'a', start + 10), store.size]).toEqual([false, 3]);
    clock.now = start + 11;
    expect([store.witness(jkt, 'd', start + 300), store.size]).toEqual([true, 1]);
  });

  it('full of the dead → room for each new one', () => {
    const { store, clock } = createStore(100);
    for (let round = 0; round < 200; round++) {
      for (let i = 0; i < 100; i++) expect(store.witness(jkt, `${round}.${i}`, clock.now + (i % 7))).toBe(true);
      expect(store.size).toBe(100);
      clock.now += 7;
      expect(store.size).toBe(0);
    }
  });

  it('a proof that has ended by this clock → proof_too_old, for it may be forgotten', () => {
    const { store, clock } = createStore();
    expect(reasonOf(() => store.witness(jkt, 'a', start - 1))).toBe('proof_too_old');
    store.witness(jkt, 'b', start + 5);
    clock.now = start + 10;
    expect(reasonOf(() => store.witness(jkt, 'b', start + 5))).toBe('proof_too_old');
  });

  it('a clock set back → what was forgotten is refused, what is alive is known', () => {
    const { store, clock } = createStore();
    store.witness(jkt, 'a', start + 5);
    store.witness(jkt, 'b', start + 300);
    clock.now = start + 100;
    store.witness(jkt, 'c', start + 400);
    clock.now = start;
    expect(reasonOf(() => store.witness(jkt, 'a', start + 5))).toBe('proof_too_old');
    expect([store.witness(jkt, 'b', start + 300), store.witness(jkt, 'c', start + 400)]).toEqual([false, false]);
  });

  it('20 000 proofs with equal beginnings and ends, over all parts → each is first once, and all are known', () => {
    const { store } = createStore();
    const jtiOf = (index: number) => `${'x'.repeat(100)}${index}${'x'.repeat(100)}`;
    let first = 0;
    let again = 0;
    for (let i = 0; i < 20_000; i++) if (store.witness(jkt, jtiOf(i), start + (i % 331))) first++;
    for (let i = 0; i < 20_000; i++) if (store.witness(jkt, jtiOf(i), start + (i % 331))) again++;
    expect([first, again, store.size]).toEqual([20_000, 0, 20_000]);
  });

  it('without options → the clock of the machine', () => {
    const store = createMemoryReplayStore();
    const until = Date.now() / 1000 + 301;
    expect([store.witness(jkt, 'a', until), store.witness(jkt, 'a', until), store.size]).toEqual([true, false, 1]);
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e9])('a capacity of %s → TypeError', (capacity) => {
    const create = () => createMemoryReplayStore({ capacity });
    expect(create).toThrow(new TypeError('capacity: write a whole number from 1 to 100000000'));
  });

  it.each([1, 100_000_000])('a capacity of %s is allowed', (capacity) =>
    expect(createMemoryReplayStore({ capacity }).size).toBe(0),
  );
});

it('pairs that differ → names that differ', () => {
  const texts = fc.string({ unit: fc.constantFrom('1', '2', '.', 'a') });
  fc.assert(
    fc.property(texts, texts, texts, texts, (a, b, c, d) => {
      expect(replayName(a, b) === replayName(c, d)).toBe(a === c && b === d);
    }),
  );
});

it('any order of proofs and of time → as a plain map would have it', () => {
  const steps = fc.array(
    fc.record({ jti: fc.nat(30).map(String), life: fc.integer({ min: -2, max: 9 }), pause: fc.nat(3) }),
    { maxLength: 300 },
  );
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 20 }), (list, capacity) => {
      const { store, clock } = createStore(capacity);
      const model = new Map<string, number>();
      for (const { jti, life, pause } of list) {
        clock.now += pause;
        for (const [name, until] of model) if (until < clock.now) model.delete(name);
        expect(store.size).toBe(model.size);
        const outcome = store.witness(jkt, jti, clock.now + life);
        const shown = outcome instanceof AccessError ? outcome.reason : outcome;
        if (life < 0) expect(shown).toBe('proof_too_old');
        else if (model.has(jti)) expect(shown).toBe(false);
        else expect(shown).toBe(model.size === capacity ? 'replay_store_full' : true);
        if (shown === true) model.set(jti, clock.now + life);
      }
    }),
    { numRuns: 300 },
  );
});
