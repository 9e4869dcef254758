import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import { isDeclaredAbsent, listPackages, type ProgramName } from './programs.ts';

/** Counts the tests, and says what was skipped and why. An error outside all tests counts as a failed one. */
export function summarize(modules: readonly TestModule[], unhandledErrors: readonly unknown[] = []) {
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
    /** The missing programs with the number of tests that were skipped, and the command that installs them. */
    missing: tellMissing(programs),
    /** The ten files that took longest, with their seconds. */
    slowest: tellSlowest(modules),
    /** Failed tests, suites and files, by file and name. */
    failed,
    /** The reason that the run fails in CI without a failed test. */
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

function tellMissing(programs: readonly (readonly [ProgramName, number])[]): readonly string[] {
  const tell = (title: string, listed: typeof programs): readonly string[] =>
    listed.length === 0 ? [] : [`${title}: ${listed.map(([name, count]) => `${name} (${count})`).join(', ')}`];
  const absent = programs.filter(([program]) => !isDeclaredAbsent(program));
  return [
    ...tell(
      'Tests skipped, because ABSENT_PROGRAMS names',
      programs.filter((each) => !absent.includes(each)),
    ),
    ...tell('Tests skipped, because these programs are not installed', absent),
    ...(absent.length === 0
      ? []
      : [`To install them: sudo apt-get install ${listPackages(absent.map(([name]) => name))}`]),
  ];
}

function tellSlowest(modules: readonly TestModule[]): string {
  const files = modules.map((module) => [module.relativeModuleId, module.diagnostic().duration / 1000] as const);
  const slowest = files.toSorted(([, one], [, other]) => other - one).slice(0, 10);
  return `Seconds of the slowest files: ${slowest.map(([name, seconds]) => `${name.replace(/^test\/|\.test\.ts$/g, '')} ${seconds.toFixed(1)}`).join(', ')}`;
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
    const { line, missing, slowest, failed, complaints } = summarize(modules, unhandledErrors);
    if (missing.length > 0) process.stdout.write(`\n${missing.join('\n')}\n`);
    if (process.env['CI'] && complaints.length > 0) {
      process.stdout.write(`\nIn CI a skipped test fails the run:\n${complaints.join('\n')}\n`);
      process.exitCode = 1;
    }
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(join(this.#folder, 'tests.txt'), `${line}\n`);
    writeFileSync(join(this.#folder, 'failed.txt'), failed.map((name) => `${name}\n`).join(''));
    process.stdout.write(`\n${slowest}\n${line}\n`);
  }
}
