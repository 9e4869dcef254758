/**
 * Test files that have a process of their own; the others follow each other in one process, which spares its start and the
 * loading of what they share. These put something else in the place of a module, or listen for signals, or have not been tried without.
 */
export const isolatedFiles: readonly string[] = [
  'test/adapters/**/*.test.ts',
  'test/examples/**/*.test.ts',
  // Its tokens are made for the time at which a module is loaded.
  'test/migration/**/*.test.ts',
  'test/runtimes/**/*.test.ts',
  'test/testing/**/*.test.ts',
  'test/bench/aims.test.ts',
  'test/bench/scaling-report.test.ts',
  'test/cli/dev.test.ts',
  'test/dpop/replay-redis*.test.ts',
  'test/dpop/redis-link.test.ts',
  'test/outbound/outbound.test.ts',
  'test/resource-server/hot-path.test.ts',
  // What waits there gives up after a minute, when the file is over.
  'test/token-status/fair-calls.test.ts',
  'test/option-members.test.ts',
  'test/platform.test.ts',
];
