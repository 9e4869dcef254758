/** Whether the end of a signature came before; the first time it is noted, and the answer is no. */
export type SeenFilter = (tail: string) => boolean;

/** A power of two; four bytes each. */
const slots = 65_536;
/** 48 bits of the signature. */
const characters = 8;

/**
 * Remembers signatures in 256 KiB, however many come. A slot holds the last that fell into it, by 32 bits of its own: one that
 * came long ago is forgotten, and one in 65 536 is taken for another.
 */
export function createSeenFilter(): SeenFilter {
  const marks = new Int32Array(slots);
  return (tail) => {
    let mark = 0;
    for (let i = 0; i < characters; i++) mark = (Math.imul(mark, 31) + tail.charCodeAt(i)) | 0;
    const slot = mark & (slots - 1);
    if (marks[slot] === mark) return true;
    marks[slot] = mark;
    return false;
  };
}
