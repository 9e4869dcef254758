import process from 'node:process';

/** A folder of `src`, or `redis`: what of `src/core/dpop` is tested with a real one. All folders where it is not set. */
const part = process.env.MUTATE ?? '{jose,http,outbound,dpop,keys,token,policy,refusal}';
const report = `reports/mutation/${process.env.MUTATE ?? 'all'}`;

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: part === 'redis' ? ['src/core/dpop/*redis*.ts'] : [`src/${part}/**/*.ts`, '!src/core/dpop/*redis*.ts'],
  testRunner: 'vitest',
  vitest: { configFile: 'vitest.mutation.config.ts' },
  // Names no file: rewriting one needs the programming interface of an older compiler.
  tsconfigFile: 'none',
  coverageAnalysis: 'perTest',
  concurrency: 1,
  timeoutMS: 15_000,
  timeoutFactor: 3,
  tempDirName: '.stryker-tmp',
  ignorePatterns: ['coverage', 'reports', 'build', 'dist', 'tools', 'deploy', 'docs'],
  reporters: ['clear-text', 'json', 'progress-append-only'],
  clearTextReporter: { reportTests: false, allowColor: false },
  jsonReporter: { fileName: `${report}.json` },
  incrementalFile: `${report}-incremental.json`,
};
