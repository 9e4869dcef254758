import type { CheckVerdict, ExplainedCheck, Explanation } from './explanation.ts';
import { toAscii } from './shown-text.ts';

/** How a terminal shows it. Words carry the meaning: a colour only repeats it. */
export interface TerminalStyle {
  /** Paints a word, or gives it back as it is. */
  readonly paint: (style: 'good' | 'bad', text: string) => string;
  /** `ascii` for terminals that know nothing else. */
  readonly characters: 'all' | 'ascii';
}

/** Without colours. */
export const plainStyle: TerminalStyle = { paint: (_, text) => text, characters: 'all' };

const docsUrl = 'https://github.com/portcullis-oauth/portcullis/blob/main/docs/';
const words: Readonly<Record<CheckVerdict, string>> = {
  pass: 'ok',
  fail: 'FAIL',
  follows: 'FAIL',
  blocked: '-',
  skipped: '-',
  unknown: '-',
};

/** What a check looks at, if its id does not say it. */
const claimNames: Readonly<Record<string, string>> = {
  issuer: 'iss',
  exp_form: 'exp',
  nbf_form: 'nbf',
  iat_form: 'iat',
  scopes: 'scope',
  any_scope: 'scope',
  proof_method: 'htm',
  proof_url: 'htu',
  proof_age: 'iat',
  proof_lead: 'iat',
};

/** Causes that say how the two values differ: they stand below both. */
const comparisons: ReadonlySet<string> = new Set([
  'audience_slash',
  'audience_case',
  'audience_scheme',
  'audience_spelling',
  'issuer_slash',
]);

/** Groups that share a row. */
const rowNames: Readonly<Record<string, string>> = {
  url: 'credentials',
  shape: 'credentials',
  claims_form: 'credentials',
  client: 'aud',
  introspection: 'credentials',
  alg: 'header',
  typ: 'header',
  parameters: 'header',
  kid: 'header',
  sub: 'sub scope',
  scope: 'sub scope',
  kind: 'sub scope',
  client_id: 'sub scope',
  jti: 'sub scope',
  confirmation: 'binding',
  deny_list: 'binding',
  certificate: 'binding',
  client_certificate: 'binding',
  scopes: 'policy',
  any_scope: 'policy',
  permissions: 'policy',
  acr: 'policy',
  auth_time: 'policy',
  claims_schema: 'policy',
};

function rowOf({ group }: ExplainedCheck): string {
  return group.startsWith('proof') ? 'proof' : (rowNames[group] ?? group);
}

/** Writes an explanation for people: what decided first, then a row for each group of checks. */
export function formatExplanation(explanation: Explanation, style: TerminalStyle = plainStyle): string {
  const { verdict, reason, checks } = explanation;
  const failed = checks.filter((check) => check.verdict === 'fail');
  const [first, ...others] = failed;
  const lines =
    first === undefined
      ? [style.paint(verdict === 'admitted' ? 'good' : 'bad', `${verdict}${reason === undefined ? '' : `: ${reason}`}`)]
      : formatFirst(headlineOf(explanation), first, style);
  const more = others.map(
    ({ reason: name, seen, why, causes }) =>
      `also wrong: ${(name ?? '').padEnd(18)}  ${causes?.[0]?.note ?? [seen, why].filter(Boolean).join(', ')}`,
  );
  const shown = (explanation.shown ?? []).map(
    ({ claim, value, verified }) => `shown: ${claim} is ${value}${verified ? '' : '  (unverified text of the token)'}`,
  );
  const text = [...lines, ...more, ...shown, '', ...formatRows(checks, style)].map((line) => line.trimEnd()).join('\n');
  return `${style.characters === 'ascii' ? toAscii(text) : text}\n`;
}

function headlineOf({ verdict, rule }: Explanation): string {
  if (verdict === 'undecided') return 'undecided without keys, and wrong in any case';
  if (rule?.mode === 'report') return `${verdict}, since the rule ${rule.id} only reports; it would be refused`;
  return verdict;
}

/** One refusal, for lists of several: a headline, what was seen, what was wanted, what to do. */
export function formatFirst(verdict: string, check: ExplainedCheck, style: TerminalStyle): readonly string[] {
  const { id, reason = '', seen, expected, verified, setting, causes = [], why, fix } = check;
  const wanted = typeof expected === 'string' ? [expected] : (expected ?? []);
  const width = Math.max(28, ...[seen ?? '', ...wanted].map((text) => text.length));
  const row = (label: string, value: string, remark: string): string =>
    `  ${label.padEnd(7)} ${remark === '' ? value : value.padEnd(width + 2)}${remark === '' ? '' : `  (${remark})`}`;
  const [cause] = causes;
  const seenRemark = verified === false ? 'unverified text of the token' : (why ?? '');
  // What is certain leaves no room for what is only likely.
  const told = causes.some(({ certainty }) => certainty === 'certain')
    ? causes.filter(({ certainty }) => certainty === 'certain')
    : causes;
  const fixes = told.length > 0 ? told : fix === undefined ? [] : [{ fix, certainty: 'certain' as const }];
  const values = [
    ...(seen === undefined ? [] : [row(`${claimNames[id] ?? id} is`, seen, seenRemark)]),
    ...wanted.map((text, index) => row(index === 0 ? 'wants' : 'or', text, index === 0 ? (setting ?? '') : '')),
  ];
  const named = cause?.note === undefined ? [] : [row('cause', cause.note, cause.certainty)];
  const isAboutValues = cause !== undefined && comparisons.has(cause.id);
  return [
    `${style.paint('bad', `${verdict}: ${reason}`).padEnd(44)}  ${check.docs === undefined ? '' : `${docsUrl}${check.docs}`}`,
    ...(isAboutValues ? [...values, ...named] : [...named, ...values]),
    ...fixes.flatMap((each, index) => [
      row(index === 0 ? 'fix' : 'or', each.fix, index > 0 && each.certainty === 'likely' ? 'if likely' : ''),
      ...('or' in each && each.or !== undefined ? [row('or', each.or, '')] : []),
    ]),
  ];
}

function formatRows(checks: readonly ExplainedCheck[], style: TerminalStyle): readonly string[] {
  const groups = [...new Set(checks.map(rowOf))];
  const width = Math.max(12, ...groups.map((group) => group.length));
  return groups.map((group) => {
    const members = checks.filter((check) => rowOf(check) === group);
    const shown = pickShown(members);
    const word = words[shown.verdict].padEnd(5);
    const painted = shown.verdict === 'pass' ? style.paint('good', word) : word;
    const label = words[shown.verdict] === 'FAIL' ? style.paint('bad', word) : painted;
    return `${group.padEnd(width)} ${label} ${describeRow(shown, members)}`;
  });
}

/** The check that stands for its group: the first that fails, or else the first that says something. */
function pickShown(members: readonly ExplainedCheck[]): ExplainedCheck {
  const of = (...verdicts: readonly CheckVerdict[]) => members.find(({ verdict }) => verdicts.includes(verdict));
  const shown = of('fail', 'follows') ?? of('blocked') ?? of('unknown') ?? of('pass') ?? members[0];
  return shown ?? { id: '', group: '', verdict: 'skipped' };
}

function describeRow(shown: ExplainedCheck, members: readonly ExplainedCheck[]): string {
  if (shown.verdict === 'fail') return shown.reason ?? '';
  if (shown.verdict === 'follows') return `${shown.reason ?? ''}, follows from what failed above`;
  if (shown.verdict !== 'pass') return shown.why ?? '';
  return [...new Set(members.filter(({ verdict }) => verdict === 'pass').map(({ why, seen }) => why ?? seen))]
    .filter((text) => text !== undefined && text !== '')
    .join(', ');
}
