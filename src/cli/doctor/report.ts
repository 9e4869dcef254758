import { toAscii } from '../../core/shown-text.ts';
import type { TerminalStyle } from '../../explain/terminal-text.ts';
import type { Finding, Level } from './finding.ts';

const words: Readonly<Record<Level, string>> = { ok: 'ok', warn: 'warn', fail: 'FAIL', skipped: '-', unknown: '?' };
const lineLength = 120;

/** Formats findings for a terminal: one line each, one line for all skipped checks, and the totals. */
export function formatFindings(findings: readonly Finding[], style: TerminalStyle): string {
  const width = Math.max(10, ...findings.map(({ check }) => check.length)) + 1;
  const indent = ' '.repeat(width + 6);
  const lines = findings
    .filter(({ level }) => level !== 'skipped')
    .flatMap(({ check, level, name, issuer, seen, expected, fix }) => {
      const word = words[level].padEnd(5);
      const painted = level === 'fail' ? style.paint('bad', word) : level === 'ok' ? style.paint('good', word) : word;
      const comparison = expected === undefined ? '' : `; expected: ${expected}`;
      const label = `${name === undefined ? '' : `${name}: `}${issuer === undefined ? '' : `${issuer}: `}`;
      const line = `${check.padEnd(width)}${painted} ${label}${seen}${comparison}`;
      if (fix === undefined) return [line];
      return line.length + fix.length + 11 <= lineLength
        ? [`${line}      fix: ${fix}`]
        : [line, `${indent}fix: ${fix}`];
    });
  const text = [...lines, ...formatSkipped(findings), countFindings(findings)].join('\n');
  return `${style.characters === 'ascii' ? toAscii(text) : text}\n`;
}

function formatSkipped(findings: readonly Finding[]): readonly string[] {
  const skipped = findings.filter(({ level }) => level === 'skipped');
  if (skipped.length === 0) return [];
  const reasons = [...new Set(skipped.map(({ seen }) => seen))].map((reason) => {
    const checks = skipped.filter(({ seen }) => seen === reason).map(({ check }) => check);
    return `${[...new Set(checks)].join(', ')} (${reason})`;
  });
  return [`not checked: ${reasons.join('; ')}`];
}

function countFindings(findings: readonly Finding[]): string {
  const count = (level: Level): number => findings.filter((finding) => finding.level === level).length;
  const plural = (number: number, one: string): string => `${number} ${one}${number === 1 ? '' : 's'}`;
  const notChecked = count('skipped') + count('unknown');
  const more = notChecked === 0 ? '' : `, ${notChecked} not checked`;
  return `${count('ok')} ok, ${plural(count('warn'), 'warning')}, ${plural(count('fail'), 'failure')}${more}`;
}
