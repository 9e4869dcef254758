import { defineConfig } from 'vitest/config';
import type { Reporter } from 'vitest/node';

const part = process.env['MUTATE'] ?? 'core/{jose,http,outbound,dpop,keys,token,policy,refusal}';
const redisTests = 'test/core/dpop/*redis*.test.ts';

/** A source that no longer loads leaves no test to fail: without this it would count as a mutant that survived. */
const loadReporter: Reporter = {
  onTestRunEnd(modules) {
    if (modules.some((module) => module.errors().length > 0)) throw new Error('A test file did not load.');
  },
};

/**
 * Unit tests of the code that decides about requests, for mutation testing: without processes and real waits, except
 * for the part `redis`.
 */
export default defineConfig({
  test: {
    // The rows of the catalogue are the tests of invalid tokens and proofs.
    include: part === 'redis' ? [redisTests] : [`test/${part}/**/*.test.ts`, 'test/catalogue/tokens.test.ts'],
    exclude: [
      // A thousand vectors that load at once: what they say of one rule, the tables of the other files say too.
      'test/core/jose/wycheproof.test.ts',
      // Whole proofs at random, by the thousand.
      'test/core/dpop/proof-properties.test.ts',
      ...(part === 'redis' ? [] : [redisTests]),
      // A real provider, and fetches that hang.
      'test/core/keys/key-set-provider.test.ts',
    ],
    // A mutant that waits for what never comes is found out sooner.
    testTimeout: part === 'redis' ? 6_000 : 20_000,
    hookTimeout: 60_000,
    reporters: [loadReporter],
  },
});
