import process from 'node:process';

const folder = process.env.MUTATE ?? '{token,http,dpop,policy,keys,introspection,revocation}';

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: [`src/${folder}/**/*.ts`],
  testRunner: 'vitest',
  vitest: { configFile: 'vitest.mutation.config.ts' },
  // Names no file: rewriting one needs the programming interface of an older compiler.
  tsconfigFile: 'none',
  coverageAnalysis: 'perTest',
  concurrency: 1,
  timeoutMS: 15_000,
  timeoutFactor: 3,
  tempDirName: '.stryker-tmp',
  ignorePatterns: ['coverage', 'dist', 'bench', 'deploy', 'docs'],
  reporters: ['clear-text', 'json'],
  clearTextReporter: { reportTests: false, allowColor: false },
  jsonReporter: { fileName: 'coverage/mutation/mutation.json' },
};
