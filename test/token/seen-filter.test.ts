import { hash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSeenFilter } from '../../src/token/seen-filter.ts';

const digestOf = (text: string | number) => hash('sha256', String(text), 'base64url');

describe('a digest', () => {
  it('the first time → new; then seen, each time', () => {
    const wasSeen = createSeenFilter();
    expect([1, 2, 3].map(() => wasSeen(digestOf('a')))).toEqual([false, true, true]);
    expect(createSeenFilter()(digestOf('a'))).toBe(false);
  });

  it('of ten thousand → seen, but for those whose slot another has taken', () => {
    const wasSeen = createSeenFilter();
    const digests = Array.from({ length: 10_000 }, (_, index) => digestOf(index));
    // One in 65 536 that share a slot is taken for another.
    expect(digests.filter(wasSeen).length).toBeLessThanOrEqual(2);
    // One in fourteen has lost its slot to another, and some of the others lose theirs to it now.
    const seen = digests.filter(wasSeen).length;
    expect(seen).toBeGreaterThan(8000);
    expect(seen).toBeLessThan(9900);
  });

  it('of three hundred thousand → the last are seen, the first are forgotten', () => {
    const wasSeen = createSeenFilter();
    for (let index = 0; index < 300_000; index++) wasSeen(digestOf(index));
    expect(wasSeen(digestOf(299_999))).toBe(true);
    const first = Array.from({ length: 1000 }, (_, index) => digestOf(index));
    expect(first.filter(wasSeen).length).toBeLessThan(50);
  });

  it('that differs in one of its first eight characters alone → another', () => {
    const digest = digestOf('a');
    for (let at = 0; at < 8; at++) {
      const wasSeen = createSeenFilter();
      wasSeen(digest);
      expect(wasSeen(digest.slice(0, at) + (digest[at] === 'A' ? 'B' : 'A') + digest.slice(at + 1))).toBe(false);
    }
  });
});
