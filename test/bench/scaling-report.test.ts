import { describe, expect, it } from 'vitest';
import { checksPerToken, workersFor } from '../../tools/bench/scaling-report.js';

describe('signature checks of one token', () => {
  it('one worker and many calls → two: it is kept from its second time on', () => {
    expect(checksPerToken(1000, 1)).toBeCloseTo(2, 10);
  });

  it('many more workers than calls → as many as calls', () => {
    expect(checksPerToken(10, 1_000_000)).toBeCloseTo(10, 3);
  });

  it('as many calls as workers → each worker gets one on average, and makes 2 − 3 ÷ e checks', () => {
    expect(checksPerToken(50, 50) / 50).toBeCloseTo(2 - 3 / Math.E, 10);
  });
});

describe('workers for a million decisions a second', () => {
  it('a check costs as much as none → 20 µs are 20 cores, and 34 at 60 % of each', () => {
    expect(workersFor(100, { warm: 20, cold: 20 })).toBe(34);
  });

  it('tokens that come once → all decisions are cold', () => {
    expect(workersFor(1, { warm: 20, cold: 60 })).toBe(100);
  });

  it('tokens that come very often → nearly all are warm', () => {
    expect(workersFor(1_000_000, { warm: 20, cold: 60 })).toBe(34);
  });
});
