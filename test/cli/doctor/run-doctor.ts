import type { Finding } from '../../../src/cli/doctor/finding.ts';
import { runCommand } from '../../support/command-runs.ts';

/** The findings of `portcullis doctor --json`, its exit status, and what it says besides. */
export async function runDoctor(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly status: number | null; readonly findings: readonly Finding[]; readonly stderr: string }> {
  // Long enough for a machine that is busy with other tests.
  const { status, stdout, stderr } = await runCommand(['doctor', '--json', '--timeout', '30', ...args], environment);
  if (stdout === '') throw new Error(`doctor ended with ${status}: ${stderr}`);
  return { status, findings: (JSON.parse(stdout) as { readonly findings: readonly Finding[] }).findings, stderr };
}

/** Codes of what is wrong, in order. */
export function codesOf(findings: readonly Finding[]): readonly unknown[] {
  return findings.flatMap(({ code }) => code ?? []);
}
