import { describe, expect, it } from 'vitest';
import { createDenyList, type DenyEntry, type DenyListOptions } from '../../../src/core/introspection/deny-list.ts';

const start = 1_700_000_000;

/** A list on a clock that a test sets. */
function open(options: DenyListOptions = {}) {
  let time = start;
  const list = createDenyList({ now: () => time, ...options });
  const wait = (seconds: number): void => {
    time += seconds;
  };
  return { list, wait };
}

describe('a deny list', () => {
  it('empty → denies nothing', () => {
    const { list } = open();
    expect(list.denies({ jti: 'a', sub: 'b' }, 'c')).toBe(false);
    expect(list.list()).toEqual([]);
  });

  it.each([
    ['jti', { jti: 'bad' }, 'good'],
    ['sub', { sub: 'bad' }, undefined],
    ['kid', {}, 'bad'],
  ] as const)('a %s → denied until it is taken off', (kind, claims, kid) => {
    const { list } = open({ [kind]: ['bad'] });
    expect(list.denies(claims, kid)).toBe(true);
    expect(list.denies({ jti: 'good', sub: 'good' }, 'good')).toBe(false);
    expect(list.remove({ kind, value: 'bad' })).toBe(true);
    expect(list.remove({ kind, value: 'bad' })).toBe(false);
    expect(list.denies(claims, kid)).toBe(false);
  });

  it('a value of one kind → not found under another', () => {
    const { list } = open({ sub: ['bad'] });
    expect(list.denies({ jti: 'bad' }, 'bad')).toBe(false);
  });

  it.each([1, null, ['bad'], undefined])('a claim that is not a string (%j) → not found', (sub) => {
    expect(open({ sub: ['bad'] }).list.denies({ sub }, undefined)).toBe(false);
  });

  it('until a time → denied before it, and not after it', () => {
    const { list, wait } = open();
    list.add({ kind: 'sub', value: 'bad', until: start + 10 });
    wait(9);
    expect(list.denies({ sub: 'bad' }, undefined)).toBe(true);
    expect(list.list()).toEqual([{ kind: 'sub', value: 'bad', until: start + 10 }]);
    wait(1);
    expect(list.denies({ sub: 'bad' }, undefined)).toBe(false);
    expect(list.list()).toEqual([]);
  });

  it('added again → the later word counts', () => {
    const { list, wait } = open({ jti: [{ value: 'bad', until: start + 10 }] });
    list.add({ kind: 'jti', value: 'bad' });
    wait(10);
    expect(list.list()).toEqual([{ kind: 'jti', value: 'bad' }]);
  });

  it('replaced → previous values are admitted again', () => {
    const { list } = open({ jti: ['old'] });
    list.replace({ kid: ['new'], sub: [{ value: 'mallory', until: start + 1 }] });
    expect(list.denies({ jti: 'old' }, undefined)).toBe(false);
    expect(list.list()).toEqual([
      { kind: 'sub', value: 'mallory', until: start + 1 },
      { kind: 'kid', value: 'new' },
    ]);
  });

  it('no clock → the clock of the host', () => {
    const list = createDenyList({ sub: [{ value: 'bad', until: Date.now() / 1000 + 60 }] });
    list.add({ kind: 'sub', value: 'worse', until: Date.now() / 1000 - 1 });
    expect(list.denies({ sub: 'bad' }, undefined)).toBe(true);
    expect(list.denies({ sub: 'worse' }, undefined)).toBe(false);
  });
});

describe('the bound', () => {
  it('one more → RangeError, and the others stay', () => {
    const { list } = open({ maxEntries: 2, jti: ['a'], kid: ['b'] });
    expect(() => list.add({ kind: 'sub', value: 'c' })).toThrow(RangeError);
    expect(() => list.replace({ sub: ['a', 'b', 'c'] })).toThrow(RangeError);
    expect(list.list()).toHaveLength(2);
    list.add({ kind: 'jti', value: 'a', until: start + 1 }); // is there already
    expect(list.list()).toHaveLength(2);
  });

  it('expired entries make room', () => {
    const { list, wait } = open({ maxEntries: 1, jti: [{ value: 'a', until: start + 1 }] });
    wait(1);
    list.add({ kind: 'jti', value: 'b' });
    expect(list.list()).toEqual([{ kind: 'jti', value: 'b' }]);
  });

  it.each([0, -1, Number.NaN])('of %d → TypeError', (maxEntries) => {
    expect(() => open({ maxEntries })).toThrow(TypeError);
  });
});

describe('a malformed value → TypeError that shows the format, and the list is unchanged', () => {
  it.each<[string, unknown]>([
    ['another kind', { iss: ['a'] }],
    ['another kind, without a value', { iss: [] }],
    ['a kind of every object', { constructor: ['a'] }],
    ['no list', { jti: 'a' }],
    ['an empty text', { jti: [''] }],
    ['a text over 1024 characters', { jti: ['a'.repeat(1025)] }],
    ['a number', { jti: [1] }],
    ['null', { jti: [null] }],
    ['a time that is text', { jti: [{ value: 'a', until: 'tomorrow' }] }],
    ['a time that is none', { jti: [{ value: 'a', until: Number.NaN }] }],
    ['a time of zero', { jti: [{ value: 'a', until: 0 }] }],
  ])('%s', (_name, values) => {
    const { list } = open({ sub: ['bad'] });
    // As from a file, or from a caller without types.
    expect(() => list.replace(values as DenyListOptions)).toThrow(TypeError);
    expect(() => open(values as DenyListOptions)).toThrow(/only under jti, sub and kid/);
    expect(list.denies({ sub: 'bad' }, undefined)).toBe(true);
  });

  it('an entry', () => {
    const { list } = open();
    expect(() => list.add({ kind: 'iss', value: 'a' } as unknown as DenyEntry)).toThrow(TypeError);
    expect(list.list()).toEqual([]);
  });
});

describe('a number instead of a string', () => {
  it('jti "123" → also the number 123; a number is not a sub', () => {
    const list = createDenyList({ jti: ['123'], sub: ['123'] });
    expect(list.denies({ jti: 123 }, undefined)).toBe(true);
    expect(list.denies({ jti: '123' }, undefined)).toBe(true);
    expect(list.denies({ jti: 124 }, undefined)).toBe(false);
    expect(list.denies({ sub: 123 }, undefined)).toBe(false);
  });
});
