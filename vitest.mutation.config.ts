import { defineConfig } from 'vitest/config';
import type { Reporter } from 'vitest/node';

/** Tests in process of a folder of `src` whose tests are not only those at the same path below `test`. */
const testsOf: Readonly<Record<string, readonly string[]>> = {
  'gate/match': [
    'gate/{rule-*,request-path,rules-reader,unreachable-rules,gate}',
    ...['gate/conditions/condition', 'differential/rule-ranking'],
  ],
  'gate/identity': ['gate/{assertions,issuer-entries,gate}', 'core/assertion/*', 'properties/identity-headers'],
  'gate/rules': ['gate/{rule-*,rules-*,unreachable-rules,configurations}', 'gate/{rules,conditions}/*'],
  'gate/proxy': ['gate/{event-boundary,interim-responses,own-connections,response-heads,reverse-proxy*}'],
  'explain/causes': ['explain/*'],
  'core/policy': ['core/policy/*'],
  'core/exchange': ['core/exchange/*'],
  'core/mcp': ['core/mcp/*'],
  'core/revocation': ['core/revocation/**/*', 'core/resource-server/{revocation,token-watch}'],
};

const part = (process.env['MUTATE'] ?? 'core/policy').replace(/\/[^/]+\.ts$/, '');
// The rows of the catalogue are the tests of invalid tokens and proofs.
const tests = testsOf[part] ?? [`${part}/**/*`, 'catalogue/tokens'];

/** A source that no longer loads leaves no test to fail: without this it would count as a mutant that survived. */
const loadReporter: Reporter = {
  onTestRunEnd(modules) {
    const failed = modules.filter((module) => module.errors().length > 0).map(({ moduleId }) => moduleId);
    if (failed.length > 0) throw new Error(`Test files did not load: ${failed.join(', ')}`);
  },
};

/** Tests of one folder for mutation testing: without processes and real waits. */
export default defineConfig({
  test: {
    include: tests.map((path) => `test/${path}.test.ts`),
    exclude: [
      // A thousand vectors that load at once: what they say of one rule, the tables of the other files say too.
      'test/core/jose/wycheproof.test.ts',
      // Whole proofs at random, by the thousand.
      'test/core/dpop/proof-properties.test.ts',
      // They start processes.
      'test/**/*redis*.test.ts',
      'test/**/*process*.test.ts',
      'test/gate/rules-{command,replay}.test.ts',
      'test/core/{mcp/known-gaps,revocation/clocks,revocation/signals/signals}.test.ts',
    ],
    // A mutant that waits for what never comes is found out sooner.
    testTimeout: 20_000,
    hookTimeout: 60_000,
    reporters: [loadReporter],
  },
});
