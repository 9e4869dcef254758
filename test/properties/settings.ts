import fc from 'fast-check';

/**
 * How properties are run: in CI always the same inputs; elsewhere others each time, which fast-check prints where one
 * fails. `PROPERTY_RUNS` and `PROPERTY_SEED` say otherwise.
 */
export function configureProperties(): void {
  const { PROPERTY_RUNS: runs = '400', PROPERTY_SEED: seed, CI: ci } = process.env;
  const fixed = seed ?? (ci === undefined ? undefined : '20260101');
  fc.configureGlobal({ numRuns: Number(runs), ...(fixed !== undefined && { seed: Number(fixed) }) });
}
