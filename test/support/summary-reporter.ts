import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import { installCommand, isDeclaredAbsent, type ProgramName } from './programs.ts';

/** The result of the tests of a run. */
export interface RunSummary {
  /** `N passed, N failed, N skipped`. */
  readonly line: string;
  /** One line for each missing program. */
  readonly missing: readonly string[];
  /** The reason that the run fails in CI without a failed test. */
  readonly complaints: readonly string[];
}

/** Counts the tests, and says what was skipped and why. An error outside all tests counts as a failed one. */
export function summarize(modules: readonly TestModule[], unhandledErrors: readonly unknown[] = []): RunSummary {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  const missing = new Map<ProgramName, number>();
  const unexplained: string[] = [];
  for (const module of modules) {
    // A file that did not load, or a hook that failed, is one failure; the tests that did not run for it are skipped.
    if (module.errors().length > 0) counts.failed++;
    for (const suite of module.children.allSuites()) if (suite.errors().length > 0) counts.failed++;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      const { missingPrograms = [] } = test.meta();
      if (state === 'passed' || state === 'failed') {
        counts[state]++;
        continue;
      }
      counts.skipped++;
      for (const program of missingPrograms) missing.set(program, (missing.get(program) ?? 0) + 1);
      if (missingPrograms.length === 0 && !isCutOff(test)) unexplained.push(test.fullName);
    }
  }
  const programs = [...missing].sort(([one], [other]) => one.localeCompare(other));
  return {
    line: `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`,
    missing: programs.map(([program, count]) => tellMissing(program, count)),
    complaints: [
      ...programs
        .filter(([program]) => !isDeclaredAbsent(program))
        .map(([program]) => `${program} is missing, and ABSENT_PROGRAMS does not name it.`),
      ...unexplained.map((name) => `Skipped, and not for a missing program: ${name}`),
    ],
  };
}

/** Reports whether a hook of the test's file or suites failed. */
function isCutOff({ parent }: TestCase): boolean {
  for (let at = parent; ; at = at.parent) {
    if (at.errors().length > 0) return true;
    if (at.type === 'module') return false;
  }
}

function tellMissing(program: ProgramName, count: number): string {
  const tests = count === 1 ? '1 test was' : `${count} tests were`;
  return isDeclaredAbsent(program)
    ? `ABSENT_PROGRAMS names ${program}: ${tests} skipped.`
    : `${program} is not installed: ${tests} skipped. To install it: ${installCommand(program)}`;
}

/** Ends the output with one line that any tool can read, keeps that line in a file, and lets no skip pass in CI. */
export class SummaryReporter implements Reporter {
  readonly #folder: string;

  constructor(folder = 'coverage') {
    this.#folder = folder;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[] = []): void {
    const { line, missing, complaints } = summarize(modules, unhandledErrors);
    if (missing.length > 0) process.stdout.write(`\n${missing.join('\n')}\n`);
    if (process.env['CI'] && complaints.length > 0) {
      process.stdout.write(`\nIn CI a skipped test fails the run:\n${complaints.join('\n')}\n`);
      process.exitCode = 1;
    }
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(join(this.#folder, 'tests.txt'), `${line}\n`);
    process.stdout.write(`\n${line}\n`);
  }
}
