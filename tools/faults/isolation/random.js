// Random choices that a seed repeats.

import { makeRandom } from '../../shared/statistics.js';

/** Creates a generator; the seed is any whole number. */
export function createRandom(seed) {
  const next = makeRandom(seed);
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
