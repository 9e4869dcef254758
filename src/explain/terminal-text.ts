import { findCheck } from '../core/checks.ts';
import { docsUrl, failures, type Reason } from '../core/failures.ts';
import { toAscii } from '../core/shown-text.ts';
import type { CheckVerdict, ExplainedCheck, NamedCause } from './explained-check.ts';
import { type Explanation, fixOf } from './explanation.ts';

/** Style of a terminal. Colours only repeat the words. */
export interface TerminalStyle {
  /** Adds colour to a word, or returns it unchanged. */
  readonly paint: (style: 'good' | 'bad', text: string) => string;
  /** `ascii` for a dumb terminal. */
  readonly characters: 'all' | 'ascii';
}

export const plainStyle: TerminalStyle = { paint: (_, text) => text, characters: 'all' };

/** The word for each verdict, and its rank: the first check of the lowest rank represents its row. */
const words: Readonly<Record<CheckVerdict, readonly [word: string, rank: number]>> = {
  fail: ['FAIL', 0],
  follows: ['FAIL', 0],
  blocked: ['-', 1],
  unknown: ['-', 2],
  pass: ['ok', 3],
  skipped: ['-', 4],
};

function rowOf({ id, group }: ExplainedCheck): string {
  return findCheck(id)?.row ?? group;
}

/** Formats an explanation for a terminal: the decisive failure, then a row for each group of checks. */
export function formatExplanation(explanation: Explanation, style: TerminalStyle = plainStyle): string {
  const { verdict, reason, checks, repairs = [] } = explanation;
  const [first, ...others] = checks.filter((check) => check.verdict === 'fail');
  const said = checks.find(({ id }) => id === 'response');
  const isPartial = checks.some(({ id }) => id === 'requirements');
  const admitted = isPartial ? 'admitted: a valid token, if the route requires no scope and no permission' : verdict;
  const word = said === undefined ? admitted : `${verdict}: the response says ${said.why}`;
  const lines =
    first === undefined
      ? [style.paint(verdict === 'admitted' ? 'good' : 'bad', `${word}${reason === undefined ? '' : `: ${reason}`}`)]
      : formatFirst(headlineOf(explanation), first, style);
  const repaired = repairs.map(({ id, note }) => row(id === 'taken' ? 'read' : 'repaired', note));
  // Line breaks cannot be sent; every other repair is of a token that is refused.
  const isChanged = repairs.some(({ id }) => !['taken', 'line_breaks'].includes(id));
  const before = isChanged ? ['as pasted: refused; after the repair:'] : [];
  const more = others.flatMap((check) => {
    const values = check.causes === undefined ? [check.seen, check.why].filter(Boolean).join(', ') : '';
    const [{ fix } = {}] = fixesOf(check);
    const problem = wrap(`also wrong: ${describeProblem(check)}${values && ` (${values})`}`, 12);
    return [problem, ...(fix === undefined ? [] : [row('fix', fix)])];
  });
  const shown = (explanation.shown ?? []).map(
    ({ claim, value, verified }) => `shown: ${claim} is ${value}${verified ? '' : '  (unverified claim of the token)'}`,
  );
  const next = explanation.next === undefined ? [] : [wrap(`next: ${explanation.next}`, 6)];
  const text = [...before, ...lines, ...repaired, ...more, ...shown, '', ...formatRows(checks, style), ...next].join(
    '\n',
  );
  const trimmed = text.replace(/ +$/gm, '');
  return `${style.characters === 'ascii' ? toAscii(trimmed) : trimmed}\n`;
}

function headlineOf({ verdict, rule }: Explanation): string {
  if (verdict === 'undecided') return 'undecided, and wrong in any case';
  if (rule?.mode === 'report') return `${verdict}, because the rule ${rule.id} is in report mode; otherwise refused`;
  return verdict;
}

/** Characters of a line, and of the labels before a value. */
const lineWidth = 80;
const indent = 11;

/** Breaks a line between words. A word that is too long stays whole, so that it can be copied. */
export function wrap(text: string, depth: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/(?<=\S)(?=\s)/)) {
    if (line.trim() !== '' && line.length + word.length > lineWidth) {
      lines.push(line);
      line = `${' '.repeat(depth)}${word.trimStart()}`;
    } else line += word;
  }
  return [...lines, line].join('\n');
}

/** A label and its value; a remark that does not fit is on the next line. */
function row(label: string, value: string, remark = ''): string {
  const line = `  ${label.padEnd(indent - 3)} ${value}`;
  if (remark === '') return value.includes(' ') ? wrap(line, indent) : line;
  const isShort = line.length + remark.length + 4 <= lineWidth;
  return `${line}${isShort ? '  ' : `\n${' '.repeat(indent)}`}(${remark})`;
}

/** Checks whose values are compared character by character. */
const compared = new Set(['aud', 'issuer', 'proof_url']);

/** Shows white space at the ends of a value, which is otherwise invisible. */
function quoteEnds(values: readonly string[]): readonly string[] {
  if (values.every((value) => value === value.trim())) return values;
  return values.map((value) => `"${value.replace(/[^\S ]/g, (found) => `\\u{${found.charCodeAt(0).toString(16)}}`)}"`);
}

/** A line that marks the first difference of two values; none if they have little in common. */
function markDifference(seen: string, expected: string): readonly string[] {
  let at = 0;
  while (at < seen.length && seen[at] === expected[at]) at++;
  return at < 4 || seen === expected ? [] : [`${' '.repeat(indent + at)}^`];
}

/** The first sentence of the fix of a reason, or else of a check, which says what is wrong, and the other sentences. */
function splitFix(reason: string, own: string): readonly [problem: string, rest: string] {
  const fix = Object.hasOwn(failures, reason) ? fixOf(reason as Reason) : own; // an own member
  const [, problem = '', rest = ''] = /^(.*?)\.(?: (?=[A-Z])(.*))?$/s.exec(fix) ?? [];
  return [problem, rest];
}

/** States what is wrong, in words. */
export function describeProblem({ causes = [], reason = '', fix = '' }: ExplainedCheck): string {
  return causes[0]?.note ?? splitFix(reason, fix)[0];
}

/** The fixes of the causes, or of the check. A certain cause excludes likely ones. */
function fixesOf({ causes = [], reason = '', fix }: ExplainedCheck): readonly Pick<NamedCause, 'fix' | 'or'>[] {
  if (causes.length > 0) return causes.filter(({ certainty }) => certainty === causes[0]?.certainty);
  const [problem, rest] = splitFix(reason, fix ?? '');
  return fix === undefined ? [] : [{ fix: rest !== '' && fix === `${problem}. ${rest}` ? rest : fix }];
}

/** One refusal: headline with the cause, seen and expected values, fix. */
export function formatFirst(verdict: string, check: ExplainedCheck, style: TerminalStyle): readonly string[] {
  const { id, reason = '', seen, expected, verified, setting, causes = [], why, docs } = check;
  const [value = '', ...wanted] = quoteEnds([
    seen ?? '',
    ...(typeof expected === 'string' ? [expected] : (expected ?? [])),
  ]);
  const [cause] = causes;
  const remark = verified === false ? 'unverified claim of the token' : why;
  const headline = reason === '' ? verdict : `${verdict}: ${reason}`;
  const words = describeProblem(check);
  const first = wrap(`${headline}${words === '' ? '' : `: ${words}`}`, 2);
  return [
    first.replace(headline, style.paint('bad', headline)),
    ...(cause === undefined ? [] : [row('cause', `${cause.id} (${cause.certainty})`)]),
    ...(seen === undefined ? [] : [row(`${findCheck(id)?.value?.name ?? id} is`, value, remark)]),
    ...(why !== undefined && (seen === undefined || verified === false) ? [row('because', why)] : []),
    ...wanted.flatMap((text, index) => [
      row(index === 0 ? 'expects' : 'or', text, index === 0 ? (setting ?? '') : ''),
      ...(index === 0 && compared.has(id) ? markDifference(value, text) : []),
    ]),
    ...fixesOf(check).flatMap((each, index) => [
      row(index === 0 ? 'fix' : 'or', index === 0 ? each.fix : `less likely: ${each.fix}`),
      ...('or' in each && each.or !== undefined ? [row('or', each.or)] : []),
    ]),
    ...(docs === undefined ? [] : [row('docs', `${docsUrl}${docs}`)]),
  ];
}

function formatRows(checks: readonly ExplainedCheck[], style: TerminalStyle): readonly string[] {
  const groups = [...new Set(checks.map(rowOf))];
  const width = Math.max(12, ...groups.map((group) => group.length));
  return groups.map((group) => {
    const members = checks.filter((check) => rowOf(check) === group);
    const rankOf = ({ verdict }: ExplainedCheck): number => words[verdict][1];
    const shown = members.reduce((one, other) => (rankOf(other) < rankOf(one) ? other : one));
    const [word] = words[shown.verdict];
    const padded = word.padEnd(5);
    const label = word === '-' ? padded : style.paint(word === 'ok' ? 'good' : 'bad', padded);
    return wrap(`${group.padEnd(width)} ${label} ${describeRow(shown, members)}`, width + 7);
  });
}

function describeRow(shown: ExplainedCheck, members: readonly ExplainedCheck[]): string {
  if (shown.verdict === 'fail') return describeProblem(shown);
  if (shown.verdict === 'follows') return 'follows from what failed above';
  if (shown.verdict !== 'pass') return shown.why ?? '';
  return [...new Set(members.filter(({ verdict }) => verdict === 'pass').map(({ why, seen }) => why ?? seen))]
    .filter((text) => text !== undefined && text !== '')
    .join(', ');
}
