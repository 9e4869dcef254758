import { hash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSeenFilter } from '../../../src/core/token/token-cache.ts';

const tailOf = (text: string | number) => hash('sha256', String(text), 'base64url');

describe('the end of a signature', () => {
  it('the first time → new; then seen, each time', () => {
    const wasSeen = createSeenFilter();
    expect([1, 2, 3].map(() => wasSeen(tailOf('a')))).toEqual([false, true, true]);
    expect(createSeenFilter()(tailOf('a'))).toBe(false);
  });

  it('of ten thousand → seen, except in slots that another has taken', () => {
    const wasSeen = createSeenFilter();
    const tails = Array.from({ length: 10_000 }, (_, index) => tailOf(index));
    // One in 65 536 that share a slot is taken for another.
    expect(tails.filter(wasSeen).length).toBeLessThanOrEqual(2);
    // One in fourteen has lost its slot to another, and some of the others lose theirs to it now.
    const seen = tails.filter(wasSeen).length;
    expect(seen).toBeGreaterThan(8000);
    expect(seen).toBeLessThan(9900);
  });

  it('of three hundred thousand → the last are seen, the first are forgotten', () => {
    const wasSeen = createSeenFilter();
    for (let index = 0; index < 300_000; index++) wasSeen(tailOf(index));
    expect(wasSeen(tailOf(299_999))).toBe(true);
    const first = Array.from({ length: 1000 }, (_, index) => tailOf(index));
    expect(first.filter(wasSeen).length).toBeLessThan(50);
  });

  it('that differs in one of its first eight characters alone → another', () => {
    const tail = tailOf('a');
    for (let at = 0; at < 8; at++) {
      const wasSeen = createSeenFilter();
      wasSeen(tail);
      expect(wasSeen(tail.slice(0, at) + (tail[at] === 'A' ? 'B' : 'A') + tail.slice(at + 1))).toBe(false);
    }
  });
});
