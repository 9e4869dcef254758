// The table of the simulated fleet, in Markdown.
import { table } from './table.js';

const seconds = (value) => (value === undefined ? '' : value.toFixed(value < 10 ? 1 : 0));

export const formatFleet = ({ instances, outcomes }) =>
  table(
    [
      `${instances} instances: what happens`,
      ...['fetches a second, mean', 'most in a second', 'longest without keys, s', 'new key found after, s'],
    ],
    Object.values(outcomes).map(({ what, mean, peak, secondsWithoutKeys, judgedAfter }) => [
      what,
      mean.toFixed(1),
      String(peak),
      seconds(secondsWithoutKeys),
      seconds(judgedAfter?.most),
    ]),
  );
