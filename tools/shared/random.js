// Random choices that a seed repeats.

/** Numbers from 0 to 1 that are the same in each run (mulberry32): the same rounds give the same interval. */
export function makeRandom(seed = 1) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Creates a generator; the seed is any whole number. */
export function createRandom(seed) {
  const next = makeRandom(seed);
  /** A whole number below a bound. */
  const below = (bound) => Math.floor(next() * bound);
  return {
    below,
    /** A whole number from `least` to `most`, both included. */
    between: (least, most) => least + below(most - least + 1),
    /** True with this probability. */
    chance: (probability) => next() < probability,
    /** One member of a list. */
    pick: (list) => list[below(list.length)],
    /** One member of a list, by the `weight` of each. */
    weigh(list) {
      let left = next() * list.reduce((sum, { weight }) => sum + weight, 0);
      return list.find(({ weight }) => {
        left -= weight;
        return left < 0;
      });
    },
  };
}
