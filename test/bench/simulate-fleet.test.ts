import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

interface Outcome {
  readonly attempts: number;
  readonly mean: number;
  readonly peak: number;
  readonly secondsWithoutKeys: number;
  readonly instancesWithoutKeys: number;
  readonly judgedAfter?: { readonly p50: number; readonly most: number; readonly instances: number };
}

const instances = 20;
const script = fileURLToPath(new URL('../../tools/scripts/simulate-fleet.js', import.meta.url));
const words = [script, '--instances', String(instances), '--json'];
const found: Readonly<Record<string, Outcome>> = JSON.parse(
  execFileSync(process.execPath, words, { encoding: 'utf8' }),
);
const outcome = (name: string): Outcome => {
  const each = found[name];
  if (each === undefined) throw new Error(`There is no scenario ${name}.`);
  return each;
};

describe(`a fleet of ${instances} on a simulated clock`, () => {
  it('nothing happens → each instance asks about once in 450 s, and has keys all the time', () => {
    const { mean, secondsWithoutKeys } = outcome('calm');
    expect(instances / mean).toBeGreaterThan(430);
    expect(instances / mean).toBeLessThan(470);
    expect(secondsWithoutKeys).toBe(0);
  });

  it('all start in the same second → they ask together once, and come apart with the first refresh', () => {
    expect(outcome('start').peak).toBe(instances);
    expect(outcome('start-later').peak).toBeLessThan(instances / 4);
  });

  it('a key that is published ahead → nobody waits for it, and nobody asks more often', () => {
    const { judgedAfter, peak } = outcome('rotation');
    expect(judgedAfter).toEqual({ p50: 0, most: 0, instances });
    expect(peak).toBeLessThan(instances / 4);
  });

  it('a key that signs at once → every instance asks once more, and judges it after that one fetch', () => {
    const { judgedAfter, peak } = outcome('rotation-at-once');
    expect(peak).toBeGreaterThan(instances * 0.8);
    expect(peak).toBeLessThanOrEqual(instances + 1);
    expect(judgedAfter?.instances).toBe(instances);
    expect(judgedAfter?.most).toBeLessThan(1);
  });

  it('a key that is published late → three fetches at once of each instance at most, and judged within 10 s after it is there', () => {
    const { judgedAfter, peak } = outcome('rotation-late');
    expect(peak).toBeLessThanOrEqual(3 * instances + 1);
    expect(judgedAfter?.instances).toBe(instances);
    expect(judgedAfter?.most).toBeLessThan(303 + 11);
  });

  it('the provider is away for less than the stale period → nobody is without keys', () => {
    expect(outcome('outage')).toMatchObject({ secondsWithoutKeys: 0, instancesWithoutKeys: 0 });
  });

  it('the provider is away for longer → all are without keys, at most until one backoff after it is back', () => {
    const { secondsWithoutKeys, instancesWithoutKeys } = outcome('long-outage');
    expect(instancesWithoutKeys).toBe(instances);
    // 90 minutes, less the stale hour and what was left of ten fresh minutes.
    expect(secondsWithoutKeys).toBeGreaterThan(20 * 60);
    expect(secondsWithoutKeys).toBeLessThan(30 * 60 + 31);
  });

  it('while it is away, and when it is back, the fleet does not ask in step', () => {
    for (const name of ['outage', 'long-outage']) expect(outcome(name).peak).toBeLessThan(instances / 3);
  });
});
