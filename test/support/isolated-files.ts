/**
 * Test files with their own process. The others run in one process, which saves its start and the loading of shared
 * modules. These files replace a module, listen for signals, or are not tested in a shared process.
 */
export const isolatedFiles: readonly string[] = [
  'test/adapters/forms.test.ts',
  // Its tokens are made for the time at which a module is loaded.
  'test/migration/**/*.test.ts',
  // Its server is made at the top of a module.
  'test/runtimes/limits.test.ts',
  'test/testing/{certificate-client,listening,test-issuer}.test.ts',
  'test/cli/dev.test.ts',
  'test/differential/shortcuts.test.ts',
  'test/core/dpop/replay-redis-missing.test.ts',
  'test/core/outbound/provider-faults.test.ts',
  'test/core/resource-server/hot-path.test.ts',
  // What waits there gives up after a minute, when the file is over.
  'test/core/introspection/fair-calls.test.ts',
  'test/core/introspection/decryption.test.ts',
  // The scene of its recordings stays until the process ends.
  'test/reading.test.ts',
  'test/core/platform.test.ts',
];
