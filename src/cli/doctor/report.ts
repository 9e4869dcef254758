import { toAscii } from '../../core/shown-text.ts';
import type { TerminalStyle } from '../../explain/terminal-text.ts';
import { count } from '../rules.ts';
import type { Finding, Level } from './finding.ts';

const words: Readonly<Record<Level, string>> = { ok: 'ok', warn: 'warn', fail: 'FAIL', skipped: '-', unknown: '?' };
const lineLength = 120;

/** Formats findings for a terminal: one line each, one line for all skipped checks, and the totals. */
export function formatFindings(findings: readonly Finding[], style: TerminalStyle): string {
  const width = Math.max(10, ...findings.map(({ check }) => check.length)) + 1;
  const skipped = findings.filter(({ level }) => level === 'skipped');
  const lines = findings
    .filter((finding) => !skipped.includes(finding))
    .map(({ check, level, name, issuer, seen, expected, fix }) => {
      const word = words[level].padEnd(5);
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
