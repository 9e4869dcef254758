import { defineConfig } from 'vitest/config';
import { SummaryReporter } from '../support/summary-reporter.ts';

/** Runs the fixture as the suite is run. */
export default defineConfig({
  test: { include: ['test/run-summary/fixture.ts'], reporters: [new SummaryReporter(process.env['SUMMARY_FOLDER'])] },
});
