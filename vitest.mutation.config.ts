import { defineConfig } from 'vitest/config';
import type { Reporter } from 'vitest/node';

const folder = process.env['MUTATE'] ?? '{token,http,dpop,policy,keys}';

/** A source that no longer loads leaves no test to fail: without this it would count as a mutant that survived. */
const loadReporter: Reporter = {
  onTestRunEnd(modules) {
    if (modules.some((module) => module.errors().length > 0)) throw new Error('A test file did not load.');
  },
};

/** The unit tests of what decides about a request, for mutation testing: no proxies, no processes, no real waits. */
export default defineConfig({
  test: {
    include: [`test/${folder}/**/*.test.ts`],
    exclude: [
      // A thousand vectors that load at once: what they say of one rule, the tables of the other files say too.
      'test/token/wycheproof.test.ts',
      // Whole proofs at random, by the thousand.
      'test/dpop/proof-properties.test.ts',
      // A real Redis.
      'test/dpop/*redis*.test.ts',
      // A real provider, and fetches that hang.
      'test/keys/key-set-provider.test.ts',
    ],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    reporters: [loadReporter],
  },
});
