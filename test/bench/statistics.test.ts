import { describe, expect, it } from 'vitest';
import { makeRandom } from '../../tools/shared/random.js';
import {
  centre,
  decide,
  estimate,
  isSettled,
  leastRounds,
  median,
  quantile,
  ratiosOf,
  spread,
} from '../../tools/shared/statistics.js';

/** A bell around 0 with the width 1, from sums of even numbers. */
function makeBell(seed: number): () => number {
  const random = makeRandom(seed);
  return () => Array.from({ length: 12 }, random).reduce((sum, each) => sum + each, -6);
}

describe('the middle', () => {
  it.each([
    [[3], 3],
    [[4, 1, 3], 3],
    [[4, 1, 3, 2], 2.5],
  ])('median of %j → %d', (values, expected) => expect(median(values)).toBe(expected));

  it.each([
    [0, 1],
    [0.5, 3],
    [0.95, 4.8],
    [1, 5],
  ])('quantile %d of 1 to 5 → %d', (share, expected) =>
    expect(quantile([1, 2, 3, 4, 5], share)).toBeCloseTo(expected, 12),
  );

  it.each([
    [[7], 7],
    [[1, 3], 2], // 1, 2, 3
    [[1, 2, 9], 3.5], // 1, 1.5, 2, 5, 5.5, 9
    [[1, 2, 3, 4, 1000], 3], // a mean would say 202
  ])('centre of %j → %d', (values, expected) => expect(centre(values)).toBe(expected));
});

describe('the interval', () => {
  it('rounds that all say the same → that value, and no width', () => {
    const found = estimate([0.8, 0.8, 0.8, 0.8, 0.8]);
    for (const end of [found.value, found.low, found.high]) expect(end).toBeCloseTo(0.8, 12);
    expect(found.rounds).toBe(5);
    expect(spread(found)).toBeCloseTo(0, 12);
  });

  it('the same rounds → the same interval, each time', () => {
    const rounds = [1.1, 0.9, 1.05, 0.97, 1.2];
    expect(estimate(rounds)).toEqual(estimate(rounds));
  });

  it('a ratio and its inverse → inverse intervals', () => {
    const rounds = [1.1, 0.9, 1.05, 0.97, 1.2, 1.31];
    const [found, inverse] = [estimate(rounds), estimate(rounds.map((each) => 1 / each))];
    expect(inverse.value).toBeCloseTo(1 / found.value, 10);
    expect(inverse.low).toBeCloseTo(1 / found.high, 1);
    expect(inverse.high).toBeCloseTo(1 / found.low, 1);
  });

  it('it lies within the rounds and holds its middle', () => {
    const found = estimate([1.1, 0.9, 1.05, 0.97, 1.2]);
    expect(found.low).toBeGreaterThanOrEqual(0.9);
    expect(found.high).toBeLessThanOrEqual(1.2);
    expect(found.low).toBeLessThan(found.value);
    expect(found.high).toBeGreaterThan(found.value);
  });

  // With ten rounds of 5 % noise the mean is known to 1.96 × 5 % / √10 = 3.1 %.
  it('ten rounds of noise with a known width → it holds the truth about 95 times of 100, and is as wide as theory says', () => {
    const truth = 0.85;
    const bell = makeBell(7);
    const found = Array.from({ length: 100 }, () =>
      estimate(Array.from({ length: 10 }, () => truth * Math.exp(0.05 * bell()))),
    );
    const share = found.filter(({ low, high }) => low <= truth && truth <= high).length / found.length;
    expect(share).toBeGreaterThan(0.87);
    expect(share).toBeLessThan(0.99);
    expect(median(found.map(spread))).toBeGreaterThan(0.02);
    expect(median(found.map(spread))).toBeLessThan(0.036);
  });

  it('noise that both sides share in a round → is not in the ratio', () => {
    const noise = [1, 3, 0.5, 2, 1.4, 0.8];
    const [above, below] = [9, 10].map((factor) => noise.map((each) => each * factor));
    const found = estimate(ratiosOf(above ?? [], below ?? []));
    expect(found.value).toBeCloseTo(0.9, 10);
    expect(spread(found)).toBeCloseTo(0, 10);
  });

  it('a round that one side lacks → is left out', () => {
    expect(ratiosOf([2, undefined, 2], [1, 1, undefined])).toEqual([2]);
    expect(ratiosOf([2, undefined], [undefined, 1])).toEqual([]);
  });

  it.each([
    ['a wide interval', [0.7, 0.8, 0.9, 1, 1.1, 1.2], false],
    ['a narrow interval of few rounds', [1, 1, 1].slice(0, leastRounds - 1), false],
    ['a narrow interval', [1, 1.01, 0.99, 1, 1.01, 0.99], true],
  ])('%s → settled: %3$s', (_, rounds, expected) => expect(isSettled(estimate(rounds))).toBe(expected));
});

it.each([
  [{ low: 0.9, high: 1 }, { least: 0.9 }, 'met'],
  [{ low: 0.89, high: 1 }, { least: 0.9 }, 'undecided'],
  [{ low: 0.8, high: 0.9 }, { least: 0.9 }, 'undecided'],
  [{ low: 0.8, high: 0.89 }, { least: 0.9 }, 'missed'],
  [{ low: 100, high: 150 }, { most: 150 }, 'met'],
  [{ low: 149, high: 151 }, { most: 150 }, 'undecided'],
  [{ low: 150.1, high: 200 }, { most: 150 }, 'missed'],
])('an aim: %j, aim %j → %s', (found, aim, expected) => expect(decide(found, aim)).toBe(expected));
