import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { isolatedFiles } from './test/support/isolated-files.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { SummaryReporter } from './test/support/summary-reporter.ts';

export const ofEach = {
  // A busy machine needs longer than the second that is the default.
  expect: { poll: { timeout: 15_000 } },
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

/** With overwritten buffers: the parsers of `@redis/client` and, of a head in several reads, of undici keep parts of them. */
const notOverwritten = ['test/serve/revocation-sources.test.ts', 'test/gate/interim-responses.test.ts'];

// Of workerd alone: `npm run runtimes` names the runtime.
const excluded = [
  ...configDefaults.exclude,
  ...(process.env['OVERWRITE_BUFFERS'] === undefined ? [] : notOverwritten),
  ...(process.env['LIBRARY_RUNTIME'] === undefined ? ['test/runtimes/workers-example.test.ts'] : []),
];

// The buffers that Node hands out are overwritten: test/isolation/overwritten-buffers.js.
const setupFiles = process.env['OVERWRITE_BUFFERS'] === undefined ? [] : ['test/isolation/overwritten-buffers.js'];

// In one process for many files, the counts of V8 lacked branches that had run.
const isCounted = process.argv.includes('--coverage');

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...ofEach,
          name: 'shared',
          isolate: isCounted,
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
      // What decides about a request is covered to the last branch.
      thresholds: {
        'src/core/token/**': { branches: 100 },
        'src/core/http/**': { branches: 100 },
        'src/core/keys/**': { branches: 100 },
        'src/core/dpop/**': { branches: 100 },
        'src/core/policy/**': { branches: 100 },
        // ML-DSA needs Node 24.6.
        'src/core/jose/**': { branches: 98 },
        'src/core/outbound/**': { branches: 100 },
        'src/core/introspection/**': { branches: 100 },
        'src/core/exchange/**': { branches: 100 },
        'src/core/refusal/**': { branches: 100 },
        'src/core/resource-server/issuers/{issuer-*,trusted-issuer}.ts': { branches: 100 },
        'src/adapters/**': { branches: 100 },
        'src/testing/**': { branches: 100 },
      },
    },
  },
});
