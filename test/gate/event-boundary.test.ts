import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventBoundary } from '../../src/gate/proxy/event-boundary.ts';

/** The lengths at which an event stream may end: after each blank line, read one character at a time. */
function findEnds(text: string): readonly number[] {
  const ends = [0];
  let isEmpty = true;
  for (let i = 0; i < text.length; i++) {
    const isEnd = text[i] === '\r' || text[i] === '\n';
    if (!isEnd) isEmpty = false;
    else if (text[i] === '\n' && text[i - 1] === '\r') {
      // The rest of a CRLF: the line has ended already.
      if (ends.at(-1) === i) ends.push(i + 1);
    } else {
      if (isEmpty) ends.push(i + 1);
      isEmpty = true;
    }
  }
  return ends;
}

const note = (pieces: readonly string[]): EventBoundary => {
  const boundary = new EventBoundary();
  for (const piece of pieces) boundary.note(Buffer.from(piece));
  return boundary;
};

describe('end of an event', () => {
  it.each([
    [[], true],
    [['data: 1\n\n'], true],
    [['data: 1\n', '\n'], true],
    [['data: 1\r', '\n\r', '\n'], true],
    [['data: 1\r\r'], true],
    [['data: 1\n\r\n'], true],
    [['data: 1\r\n\r'], true],
    [['data: 1\r\n'], false],
    [['data: 1\r', '\n'], false],
    [['data: 1\n\n', 'data'], false],
    [[': comment\n'], false],
  ])('after %j → %s', (pieces, expected) => {
    expect(note(pieces).isReached()).toBe(expected);
  });

  it('any pieces → the events that were sent are complete, and one event at most follows the time it is due', () => {
    const piece = fc.string({ unit: fc.constantFrom('a', '\r', '\n'), maxLength: 5 });
    void fc.assert(
      fc.property(fc.array(piece), fc.array(piece), (before, after) => {
        const boundary = note(before);
        const sent = before.join('');
        const ends = findEnds(sent + after.join(''));
        expect(boundary.isReached()).toBe(ends.includes(sent.length));
        if (boundary.isReached()) return;
        let length = sent.length;
        for (const each of after) {
          const end = boundary.find(Buffer.from(each));
          if (end !== undefined) {
            expect(ends).toContain(length + end);
            // One more if the end is a CRLF.
            expect(length + end - (ends.find((place) => place > sent.length) ?? 0)).toBeLessThan(2);
            return;
          }
          boundary.note(Buffer.from(each));
          length += each.length;
        }
        expect(ends.every((place) => place <= sent.length)).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });
});
