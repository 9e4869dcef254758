import fc from 'fast-check';

/**
 * Settings of properties: fixed inputs in CI, random inputs elsewhere, which fast-check prints on failure.
 * `PROPERTY_RUNS` and `PROPERTY_SEED` override them: `.ci/run` makes more runs.
 */
export function configureProperties(): void {
  const { PROPERTY_RUNS: runs = '150', PROPERTY_SEED: seed, CI: ci } = process.env;
  const fixed = seed ?? (ci === undefined ? undefined : '20260101');
  fc.configureGlobal({ numRuns: Number(runs), ...(fixed !== undefined && { seed: Number(fixed) }) });
}
