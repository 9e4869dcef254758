import type { Finding } from '../../../src/cli/doctor/finding.ts';
import { runCommand } from '../../support/command-runs.ts';

/** Runs `portcullis doctor --json`. Returns its findings, exit status and standard error. */
export async function runDoctor(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly status: number | null; readonly findings: readonly Finding[]; readonly stderr: string }> {
  // Long enough for a busy host.
  const timeout = args.includes('--timeout') ? [] : ['--timeout', '30'];
  const { status, stdout, stderr } = await runCommand(['doctor', '--json', ...timeout, ...args], environment);
  if (stdout === '') throw new Error(`doctor ended with ${status}: ${stderr}`);
  return { status, findings: (JSON.parse(stdout) as { readonly findings: readonly Finding[] }).findings, stderr };
}

/** Returns the names of the findings, in order. */
export function namesOf(findings: readonly Finding[]): readonly unknown[] {
  return findings.flatMap(({ name }) => name ?? []);
}
