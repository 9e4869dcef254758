// Whether memory has come to rest.

/** The most in the third quarter of the time, and in the last. */
export function peaks(samples) {
  const quarter = Math.floor(samples.length / 4);
  return [2, 3].map((index) => Math.max(...samples.slice(quarter * index, quarter * (index + 1))));
}

/** Reports a plateau: the last quarter is not above the third, except for the rest of a garbage collection. */
export function isLevel(samples) {
  const [third, last] = peaks(samples);
  return last < third * 1.1 + 16;
}
