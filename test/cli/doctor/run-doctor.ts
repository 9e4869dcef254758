import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Finding } from '../../../src/cli/doctor/finding.ts';

const entry = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

/** What a command has printed, and how it ended. */
export interface CommandEnd {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** What a developer runs on this machine is not found in this folder. */
const base = { PATH: process.env['PATH'], XDG_CACHE_HOME: join(tmpdir(), 'portcullis-without-dev') };

/** Runs a command of the build; nothing but `PATH` is inherited. */
export function runCommand(args: readonly string[], environment: Environment, input = ''): Promise<CommandEnd> {
  const child = spawn(process.execPath, [entry, ...args], { env: { ...base, ...environment } });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined); // a command that reads nothing may have ended
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) => resolve({ status, stdout, stderr }));
  });
}

/** The findings of `portcullis doctor --json`, and its exit status. */
export async function runDoctor(
  args: readonly string[],
  environment: Environment,
): Promise<{ readonly status: number | null; readonly findings: readonly Finding[] }> {
  // Long enough for a machine that is busy with other tests.
  const { status, stdout, stderr } = await runCommand(['doctor', '--json', '--timeout', '30', ...args], environment);
  if (stdout === '') throw new Error(`doctor ended with ${status}: ${stderr}`);
  return { status, findings: (JSON.parse(stdout) as { readonly findings: readonly Finding[] }).findings };
}

/** Codes of what is wrong, in order. */
export function codesOf(findings: readonly Finding[]): readonly unknown[] {
  return findings.flatMap(({ code }) => code ?? []);
}
