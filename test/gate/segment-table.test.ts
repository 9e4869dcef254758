import { describe, expect, it } from 'vitest';
import { SegmentTable } from '../../src/gate/match/segment-table.ts';

/** As `Map` would: each text has its own value, and no other text has one. */
describe('every text is found, and no other', () => {
  for (const count of [0, 1, 2, 3, 1000, 50_000]) {
    it(`among ${count}`, () => {
      const table = new SegmentTable<number>();
      for (let i = 0; i < count; i++) table.add(`item-${i}`, i);
      const wrong = Array.from({ length: count }, (_, i) => i).filter((i) => table.get(`item-${i}`) !== i);
      const strange = Array.from({ length: 1000 }, (_, i) => `other-${i}`).filter(
        (text) => table.get(text) !== undefined,
      );
      expect({ wrong, strange }).toEqual({ wrong: [], strange: [] });
    });
  }

  it('also the empty text, and texts that are no ASCII', () => {
    const table = new SegmentTable<string>();
    for (const text of ['', 'ä', 'ö', '\0', '日本', '💡']) table.add(text, text);
    expect(['', 'ä', 'ö', '\0', '日本', '💡', 'a', '\u{1f4a0}'].map((text) => table.get(text))).toEqual([
      ...['', 'ä', 'ö', '\0', '日本', '💡'],
      undefined,
      undefined,
    ]);
  });

  it('also two texts with one number, one of them there or both', () => {
    const [first, second] = ['76mmiq', '2391dx'];
    const table = new SegmentTable<number>();
    table.add(first, 1);
    expect([table.get(first), table.get(second)]).toEqual([1, undefined]);
    table.add(second, 2);
    expect([table.get(first), table.get(second)]).toEqual([1, 2]);
  });
});
