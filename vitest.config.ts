import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { coverageFloors } from './test/support/coverage-floors.ts';
import { isolatedFiles } from './test/support/isolated-files.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { SummaryReporter } from './test/support/summary-reporter.ts';

export const ofEach = {
  // A busy machine needs longer than the defaults.
  expect: { poll: { timeout: 60_000 } },
  testTimeout: 180_000,
  hookTimeout: 180_000,
};

/** With overwritten buffers: the parsers of `@redis/client` and, of a head in several reads, of undici keep parts of them. */
const notOverwritten = ['test/serve/revocation-sources.test.ts', 'test/gate/interim-responses.test.ts'];

// Of workerd alone: `npm run runtimes` names the runtime.
const excluded = [
  ...configDefaults.exclude,
  ...(process.env['OVERWRITE_BUFFERS'] === undefined ? [] : notOverwritten),
  ...(process.env['LIBRARY_RUNTIME'] === undefined ? ['test/runtimes/workers-*.test.ts'] : []),
];

// The buffers that Node hands out are overwritten: test/isolation/overwritten-buffers.js.
const setupFiles = process.env['OVERWRITE_BUFFERS'] === undefined ? [] : ['test/isolation/overwritten-buffers.js'];

// V8 drops the code of functions that have not run for a while, and with it their counts.
const execArgv = process.argv.includes('--coverage') ? ['--no-flush-bytecode'] : [];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...ofEach,
          name: 'shared',
          isolate: false,
          execArgv,
          setupFiles: [...setupFiles, 'test/support/leftovers.ts'],
          include: ['test/**/*.test.ts'],
          exclude: [...excluded, ...isolatedFiles],
        },
      },
      { test: { ...ofEach, name: 'isolated', setupFiles, include: [...isolatedFiles], exclude: excluded } },
    ],
    globalSetup: ['test/support/packed-folder.ts', 'test/support/kept-folder.ts'],
    // Files that wait for a service leave processor time to others.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', new SummaryReporter()],
    // Processes that tests kill reset the pipes of this process, also between two tests. A reset of a TCP connection that no
    // code handles still fails the run.
    onUnhandledError: (error) => {
      if (error.message !== 'read ECONNRESET' || error.stack?.includes('Pipe.onStreamRead') !== true) return true;
      process.stderr.write('A pipe of a process that was killed was reset.\n');
      return false;
    },
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reporter: ['text', 'json-summary'],
      reportOnFailure: true,
      thresholds: Object.fromEntries(
        Object.entries(coverageFloors).map(([folder, [branches]]) => [`src/${folder}/*.ts`, { branches }]),
      ),
    },
  },
});
