import { toAscii } from '../../explain/shown-text.ts';
import type { TerminalStyle } from '../../explain/terminal-text.ts';
import type { Finding, Level } from './finding.ts';

const words: Readonly<Record<Level, string>> = { ok: 'ok', warn: 'warn', fail: 'FAIL', skipped: '-', unknown: '?' };
const lineLength = 120;

/** Writes findings for people: a line each, and how many of each kind. */
export function formatFindings(findings: readonly Finding[], style: TerminalStyle): string {
  const width = Math.max(10, ...findings.map(({ check }) => check.length)) + 1;
  const indent = ' '.repeat(width + 6);
  const lines = findings.flatMap(({ check, level, code, seen, expected, fix }) => {
    const word = words[level].padEnd(5);
    const painted = level === 'fail' ? style.paint('bad', word) : level === 'ok' ? style.paint('good', word) : word;
    const wanted = expected === undefined ? '' : `; expected: ${expected}`;
    const told = `${check.padEnd(width)}${painted} ${code === undefined ? '' : `${code} `}${seen}${wanted}`;
    if (fix === undefined) return [told];
    return told.length + fix.length + 11 <= lineLength ? [`${told}      fix: ${fix}`] : [told, `${indent}fix: ${fix}`];
  });
  const text = [...lines, countFindings(findings)].join('\n');
  return `${style.characters === 'ascii' ? toAscii(text) : text}\n`;
}

function countFindings(findings: readonly Finding[]): string {
  const count = (level: Level): number => findings.filter((finding) => finding.level === level).length;
  const plural = (number: number, one: string): string => `${number} ${one}${number === 1 ? '' : 's'}`;
  const notTried = count('skipped') + count('unknown');
  const more = notTried === 0 ? '' : `, ${notTried} not looked at`;
  return `${count('ok')} ok, ${plural(count('warn'), 'warning')}, ${plural(count('fail'), 'failure')}${more}`;
}
