// Random choices that a seed repeats.

/** Creates a generator (mulberry32); the seed is any whole number. */
export function createRandom(seed) {
  let state = seed >>> 0;

  function next() {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  return {
    /** A whole number from `least` to `most`, both included. */
    between: (least, most) => least + Math.floor(next() * (most - least + 1)),
    /** True with this probability. */
    chance: (probability) => next() < probability,
    /** One member of a list. */
    pick: (list) => list[Math.floor(next() * list.length)],
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
