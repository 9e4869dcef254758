// Cuts of what a connection sends into writes.
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';

const maxPieces = 40;

/** Ways to cut a string: each returns the positions. */
const ways = [
  { weight: 2, cut: () => [] },
  {
    weight: 4,
    cut: (bytes, random) => Array.from({ length: random.between(1, 5) }, () => random.between(0, bytes.length)),
  },
  // Around the end of each head: its last line break arrives alone, or with what follows.
  {
    weight: 3,
    cut: (bytes, random) =>
      Array.from(bytes.matchAll(/\r\n\r\n/g), ({ index }) => index + random.between(1, 4)).slice(0, maxPieces),
  },
  {
    weight: 1,
    cut(bytes, random) {
      const length = Math.max(random.between(1, 64), Math.ceil(bytes.length / maxPieces));
      return Array.from({ length: Math.floor(bytes.length / length) }, (_, i) => (i + 1) * length);
    },
  },
];

/** Cuts bytes at random positions, and at the required ones. */
export function cutAtRandom(bytes, random, required = []) {
  const chosen = random.weigh(ways).cut(bytes, random);
  const positions = [...new Set([...chosen, ...required])].filter((at) => at > 0 && at < bytes.length);
  positions.sort((one, other) => one - other);
  return [0, ...positions].map((from, i) => bytes.slice(from, positions[i]));
}

/** Waits between two writes: mostly so little that the next one is another read of the service, if it has time for it. */
export async function pauseAtRandom(random) {
  if (random.chance(0.15)) await sleep(random.between(1, 3));
  else for (let turns = random.between(0, 3); turns > 0; turns--) await setImmediate();
}
