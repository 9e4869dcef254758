// The arithmetic of the tables: the middle of ratios, its 95 % interval, and what an interval says about an aim.
import { makeRandom } from './random.js';

/** Half the width, as a share of the value, below which an interval counts as settled. */
export const settledWithin = 0.03;
const resamples = 2000;
const tails = { low: 0.025, high: 0.975 };

/** @param {readonly number[]} values */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The value below which this share of the sorted values lies, interpolated. @param {readonly number[]} sorted */
export function quantile(sorted, share) {
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at - Math.floor(at));
}

/**
 * The median of the means of all pairs (Hodges and Lehmann): one round that went wrong moves it little, and it uses the
 * other rounds nearly as well as a mean.
 *
 * @param {readonly number[]} values
 */
export function centre(values) {
  const means = new Float64Array((values.length * (values.length + 1)) / 2);
  let count = 0;
  for (let i = 0; i < values.length; i++) {
    for (let j = i; j < values.length; j++) means[count++] = (values[i] + values[j]) / 2;
  }
  means.sort();
  return (means[(count - 1) >> 1] + means[count >> 1]) / 2;
}

/**
 * @typedef {object} Estimate
 * @property {number} value the middle
 * @property {number} low the lower end of the 95 % interval
 * @property {number} high its upper end
 * @property {number} rounds how many rounds it rests on
 */

/**
 * Estimates the centre of values and its 95 % interval by bootstrap over the rounds. Positive values are compared as
 * ratios, so that a ratio and its inverse get the same result.
 *
 * @param {readonly number[]} values one a round
 * @returns {Estimate}
 */
export function estimate(values) {
  const logs = values.map(Math.log);
  const random = makeRandom();
  const drawn = Array.from({ length: resamples }, () =>
    centre(logs.map(() => logs[Math.floor(random() * logs.length)])),
  ).sort((a, b) => a - b);
  return {
    value: Math.exp(centre(logs)),
    low: Math.exp(quantile(drawn, tails.low)),
    high: Math.exp(quantile(drawn, tails.high)),
    rounds: values.length,
  };
}

/** One figure of measurements, at the index of their rounds. @param {readonly any[]} [samples] */
export function byRound(samples = [], field = 'cpu') {
  const values = [];
  for (const sample of samples) values[sample.round] = sample[field];
  return values;
}

/**
 * The ratios of two columns that were measured in the same rounds, round by round. Rounds that only one of them has are
 * left out.
 *
 * @param {readonly (number | undefined)[]} above
 * @param {readonly (number | undefined)[]} below
 */
export const ratiosOf = (above, below) =>
  above.flatMap((value, round) => {
    const other = below[round];
    return value === undefined || other === undefined ? [] : [value / other];
  });

/** Half the width of the interval as a share of the value. @param {Estimate} found */
export const spread = ({ value, low, high }) => (high - low) / 2 / value;

/** Fewer rounds than this settle nothing: a bootstrap over few rounds believes itself too much. */
export const leastRounds = 5;

/** Reports whether more rounds would change little. @param {Estimate} found */
export const isSettled = (found, within = settledWithin) => found.rounds >= leastRounds && spread(found) < within;

/**
 * Compares an interval with an aim: `undecided` if the aim is inside.
 *
 * @param {{ readonly low: number, readonly high: number }} found
 * @param {{ readonly least: number } | { readonly most: number }} aim
 * @returns {'met' | 'missed' | 'undecided'}
 */
export function decide({ low, high }, aim) {
  if ('least' in aim) return low >= aim.least ? 'met' : high < aim.least ? 'missed' : 'undecided';
  return high <= aim.most ? 'met' : low > aim.most ? 'missed' : 'undecided';
}
