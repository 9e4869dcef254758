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
  it('nothing happens → each instance fetches about once in 450 s, and always has keys', () => {
    const { mean, secondsWithoutKeys } = outcome('calm');
    expect(instances / mean).toBeGreaterThan(430);
    expect(instances / mean).toBeLessThan(470);
    expect(secondsWithoutKeys).toBe(0);
  });

  it('all start in the same second → they fetch together once, and spread with the first refresh', () => {
    expect(outcome('start').peak).toBe(instances);
    expect(outcome('start-later').peak).toBeLessThan(instances / 4);
  });

  it('a key that is published ahead → no instance waits for it or fetches more often', () => {
    const { judgedAfter, peak } = outcome('rotation');
    expect(judgedAfter).toEqual({ p50: 0, most: 0, instances });
    expect(peak).toBeLessThan(instances / 4);
  });

  it('a key that signs immediately → every instance fetches once more, and has the key after that fetch', () => {
    const { judgedAfter, peak } = outcome('rotation-at-once');
    expect(peak).toBeGreaterThan(instances * 0.8);
    expect(peak).toBeLessThanOrEqual(instances + 1);
    expect(judgedAfter?.instances).toBe(instances);
    expect(judgedAfter?.most).toBeLessThan(1);
  });

  it('a key that is published late → at most three immediate fetches of each instance, and found within 10 s', () => {
    const { judgedAfter, peak } = outcome('rotation-late');
    expect(peak).toBeLessThanOrEqual(3 * instances + 1);
    expect(judgedAfter?.instances).toBe(instances);
    expect(judgedAfter?.most).toBeLessThan(303 + 11);
  });

  it('the provider is unreachable for less than the stale period → no instance is without keys', () =>
    expect(outcome('outage')).toMatchObject({ secondsWithoutKeys: 0, instancesWithoutKeys: 0 }));

  it('the provider is away for longer → all are without keys, at most until one backoff after it is back', () => {
    const { secondsWithoutKeys, instancesWithoutKeys } = outcome('long-outage');
    expect(instancesWithoutKeys).toBe(instances);
    // 90 minutes, less the stale hour and what was left of ten fresh minutes.
    expect(secondsWithoutKeys).toBeGreaterThan(20 * 60);
    expect(secondsWithoutKeys).toBeLessThan(30 * 60 + 31);
  });

  it('provider unreachable, then reachable → the fetches of the fleet are spread', () => {
    for (const name of ['outage', 'long-outage']) expect(outcome(name).peak).toBeLessThan(instances / 3);
  });
});
