import { toAscii } from '../core/shown-text.ts';
import type { TerminalStyle } from '../explain/terminal-text.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { collect, createContext, type DoctorContext, type Findings, readTarget } from './doctor/context.ts';
import { readDeployment } from './doctor/deployments.ts';
import { checkDpop } from './doctor/dpop-check.ts';
import { type CheckName, doctorChecks, type Finding, type Level } from './doctor/finding.ts';
import { checkClocks, checkProviders } from './doctor/provider-check.ts';
import { checkRedis } from './doctor/redis-check.ts';
import { checkRevocation } from './doctor/revocation-check.ts';
import { checkRules } from './doctor/rules-check.ts';
import { checkTls } from './doctor/tls-check.ts';
import { checkUrl } from './doctor/url-check.ts';
import { count } from './rules.ts';
import { readTerminalStyle } from './terminal-style.ts';

const runs: Readonly<Record<CheckName, (context: DoctorContext) => Findings>> = {
  provider: checkProviders,
  tls: checkTls,
  clock: checkClocks,
  url: checkUrl,
  redis: checkRedis,
  revocation: checkRevocation,
  rules: checkRules,
  dpop: checkDpop,
};
const names = Object.keys(doctorChecks) as readonly CheckName[]; // the keys are the names

/** Checks the provider, the network and the service. Returns 0 if no check failed, otherwise 1. */
export async function runDoctor({ values, rest }: Flags<'doctor'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const only = values.only?.split(',').map((name) => name.trim());
  const chosen = names.filter((name) => only?.includes(name) ?? true);
  if (only?.some((name) => !Object.hasOwn(doctorChecks, name))) {
    throw new UsageError(`--only: use any of ${names.join(', ')}, separated by commas.`);
  }
  const target = readTarget(values);
  const deployment = await readDeployment(rest, environment, target.outside !== undefined || target.peers.length > 0);
  const context = createContext({ ...target, outside: target.outside ?? deployment.outside }, deployment);
  const findings = (await Promise.all(chosen.map((name) => collect(name, runs[name](context))))).flat();
  const hasFailed = findings.some(({ level }) => level === 'fail');
  const style = readTerminalStyle(environment);
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ version: 2, verdict: hasFailed ? 'failed' : 'healthy', findings })}\n`
      : formatFindings(findings, style),
  );
  return hasFailed ? 1 : exitCodes.ok;
}

const levelWords: Readonly<Record<Level, string>> = {
  ok: 'ok',
  warn: 'warn',
  fail: 'FAIL',
  skipped: '-',
  unknown: '?',
};
const lineLength = 120;

/** Formats findings for a terminal: one line each, one line for all skipped checks, and the totals. */
export function formatFindings(findings: readonly Finding[], style: TerminalStyle): string {
  const width = Math.max(10, ...findings.map(({ check }) => check.length)) + 1;
  const skipped = findings.filter(({ level }) => level === 'skipped');
  const lines = findings
    .filter((finding) => !skipped.includes(finding))
    .map(({ check, level, name, issuer, seen, expected, fix }) => {
      const word = levelWords[level].padEnd(5);
      const painted = level === 'fail' || level === 'ok' ? style.paint(level === 'ok' ? 'good' : 'bad', word) : word;
      const label = [name, issuer, seen].filter((part) => part !== undefined).join(': ');
      const line = `${check.padEnd(width)}${painted} ${label}${expected === undefined ? '' : `; expected: ${expected}`}`;
      if (fix === undefined) return line;
      return `${line}${line.length + fix.length + 11 <= lineLength ? '      ' : `\n${' '.repeat(width + 6)}`}fix: ${fix}`;
    });
  const reasons = [...new Set(skipped.map(({ seen }) => seen))].map((reason) => {
    const checks = skipped.filter(({ seen }) => seen === reason).map(({ check }) => check);
    return `${[...new Set(checks)].join(', ')} (${reason})`;
  });
  const notChecked = reasons.length === 0 ? [] : [`not checked: ${reasons.join('; ')}`];
  const number = (...levels: readonly Level[]): number => findings.filter(({ level }) => levels.includes(level)).length;
  const open = number('skipped', 'unknown');
  const more = open === 0 ? '' : `, ${open} not checked`;
  const totals = `${number('ok')} ok, ${count(number('warn'), 'warning')}, ${count(number('fail'), 'failure')}${more}`;
  const text = [...lines, ...notChecked, totals].join('\n');
  return `${style.characters === 'ascii' ? toAscii(text) : text}\n`;
}
