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
  /** Failed tests, suites and files, by file and name. */
  readonly failed: readonly string[];
  /** The reason that the run fails in CI without a failed test. */
  readonly complaints: readonly string[];
}

/** Counts the tests, and says what was skipped and why. An error outside all tests counts as a failed one. */
export function summarize(modules: readonly TestModule[], unhandledErrors: readonly unknown[] = []): RunSummary {
  const counts = { passed: 0, skipped: 0 };
  const failed = unhandledErrors.map(() => 'an error outside all tests');
  const missing = new Map<ProgramName, number>();
  const unexplained: string[] = [];
  for (const module of modules) {
    // A file that did not load, or a hook that failed, is one failure; the tests that did not run for it are skipped.
    const fail = (name: string): void => void failed.push(`${module.relativeModuleId} > ${name}`);
    if (module.errors().length > 0) fail('the file');
    for (const suite of module.children.allSuites()) if (suite.errors().length > 0) fail(suite.fullName);
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      const { missingPrograms = [] } = test.meta();
      if (state === 'failed') fail(test.fullName);
      else if (state === 'passed') counts.passed++;
      if (state === 'passed' || state === 'failed') continue;
      counts.skipped++;
      for (const program of missingPrograms) missing.set(program, (missing.get(program) ?? 0) + 1);
      if (missingPrograms.length === 0 && !isCutOff(test)) unexplained.push(test.fullName);
    }
  }
  const programs = [...missing].sort(([one], [other]) => one.localeCompare(other));
  return {
    line: `${counts.passed} passed, ${failed.length} failed, ${counts.skipped} skipped`,
    missing: programs.map(([program, count]) => tellMissing(program, count)),
    failed,
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

/**
 * Ends the output with one line that any tool can read, keeps that line and the names of failed tests in two files, and lets
 * no skip pass in CI.
 */
export class SummaryReporter implements Reporter {
  readonly #folder: string;

  constructor(folder = 'coverage') {
    this.#folder = folder;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[] = []): void {
    const { line, missing, failed, complaints } = summarize(modules, unhandledErrors);
    if (missing.length > 0) process.stdout.write(`\n${missing.join('\n')}\n`);
    if (process.env['CI'] && complaints.length > 0) {
      process.stdout.write(`\nIn CI a skipped test fails the run:\n${complaints.join('\n')}\n`);
      process.exitCode = 1;
    }
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(join(this.#folder, 'tests.txt'), `${line}\n`);
    writeFileSync(join(this.#folder, 'failed.txt'), failed.map((name) => `${name}\n`).join(''));
    process.stdout.write(`\n${line}\n`);
  }
}
