import { defineConfig } from 'vitest/config';
import { SummaryReporter } from '../test/support/summary-reporter.ts';
import { ofEach } from '../vitest.config.ts';

/** Tests that need the packages of this folder: `npm run examples`. */
export default defineConfig({
  test: {
    ...ofEach,
    include: ['examples/test/*.test.ts'],
    globalSetup: ['test/support/packed-folder.ts', 'test/support/kept-folder.ts'],
    provide: { moduleFolders: ['examples/node_modules'] },
    reporters: ['default', new SummaryReporter()],
  },
});
