import { type CheckedValue, type CheckRecord, checks } from '../core/checks.ts';
import type { AccessError } from '../core/failures.ts';
import { isTime } from '../core/jose/json.ts';
import { describeBounds, showComparison } from '../core/shown-comparison.ts';
import { shorten, showText, showValue } from '../core/shown-text.ts';
import type { Step } from '../core/walk.ts';
import type { Gathered } from './dry-run.ts';
import { audiencesOf, type Facts, type InForce, namesOf, type Setting, type SettingLabel, textOf } from './facts.ts';
import { formatDistance } from './shown-time.ts';

export interface Shown {
  readonly expected?: string | readonly string[];
  readonly seen?: string;
  readonly why?: string;
  readonly setting?: string;
}

interface View extends Pick<Facts, 'force' | 'now'> {
  readonly sight: Pick<Gathered, 'header' | 'claims' | 'proofClaims' | 'credentials'>;
}

type ShownStep = Pick<Step, 'id' | 'refusal' | 'comparison'>;

/** The members of {@link InForce} that a setting lists. */
const lists = { issuer: 'issuers', audience: 'audiences', algorithms: 'algorithms' } as const;

export function showStep({ id, refusal, comparison }: ShownStep, view: View): Shown {
  const record: CheckRecord = checks[id];
  const { value, setting } = record;
  if (refusal === undefined) return { why: describePassed({ id, comparison }, record, view) };
  const context = describeContext(refusal, view.force, value === undefined);
  const expected = describeExpected(record, comparison, view.force);
  const shown =
    value === undefined ? describeHeld(record, comparison, view.force) : describeFailed(value, comparison, view);
  return {
    ...(expected !== undefined && { expected }),
    ...shown,
    ...context,
    ...(setting !== undefined && { setting: describeLabel(view.force.labels[setting]) }),
  };
}

/** The names that the token has, for a check that requires names; the values that a condition has read. */
function describeHeld({ list }: CheckRecord, comparison: Step['comparison'], { disguise }: InForce): Shown {
  if (comparison?.values !== undefined)
    return { seen: [showComparison(comparison, disguise).received].flat().join(', ') };
  if (list === undefined || comparison === undefined) return {};
  const names = namesOf(comparison.received).map((name) => showText(name));
  return { seen: names.join(' ') || 'absent' };
}

function describePassed(
  { id, comparison }: Omit<ShownStep, 'refusal'>,
  { value }: CheckRecord,
  { sight, now }: View,
): string {
  const { credentials } = sight;
  if (id === 'credentials' && credentials !== undefined) {
    const { scheme, token } = credentials;
    return `${scheme}, ${token.length} characters, ${token.split('.').length} parts`;
  }
  if (value === undefined) return comparison?.received === undefined ? '' : showValue(comparison.received);
  const raw = sight[value.in]?.[value.name];
  if (value.as === 'time' && isTime(raw)) return formatDistance(raw, now);
  const text = showRaw(raw, value);
  return value.named ? `${value.name} ${text}` : text;
}

function describeFailed(value: CheckedValue, comparison: Step['comparison'], { sight, now }: View): Shown {
  const raw = sight[value.in]?.[value.name];
  const bounds = comparison?.time;
  if (value.as !== 'time' || !isTime(raw)) return { seen: showRaw(raw, value) };
  return { seen: formatDistance(raw, now), ...(bounds !== undefined && { expected: describeBounds(bounds) }) };
}

function showRaw(raw: unknown, { name, as, length }: CheckedValue): string {
  if (raw === undefined) return 'absent';
  if (as === 'presence') return describePresent(raw);
  if (as === 'kid') return shorten(textOf(raw));
  const list = name === 'aud' ? audiencesOf({ aud: raw }) : [];
  return showValue(list.length === 1 ? list[0] : raw, length);
}

/** Describes a value that is personal. */
function describePresent(raw: unknown): string {
  if (raw === null || raw === '') return raw === null ? 'null' : 'an empty string';
  return typeof raw === 'string' ? 'present (not shown)' : `not a string, but of type ${typeof raw} (not shown)`;
}

function describeExpected(
  { expected, setting, list }: CheckRecord,
  comparison: Step['comparison'],
  force: InForce,
): Shown['expected'] {
  const compared = expected ?? (setting === undefined ? comparison?.expected : force[lists[setting]]);
  if (compared === undefined || typeof compared === 'string') return compared && showText(compared);
  const values = [...compared].map((each) => showText(each));
  return list === 'all' ? [values.join(' ')] : values;
}

const describeLabel = ({ name, source }: SettingLabel): string => (source === undefined ? name : `${name}, ${source}`);

/** Facts of the refusal itself. A hint begins with a setting, which is shown by its label. */
function describeContext({ context }: AccessError, { labels }: InForce, withHint: boolean): Shown {
  const { expected, received, hint, parameter, claim, defect } = context ?? {};
  const seen = parameter ?? claim ?? defect ?? received;
  const [first = '', ...rest] = showValue(hint).split(' ');
  const label = rest.length > 0 && Object.hasOwn(labels, first) ? labels[first as Setting] : undefined; // an own member
  return {
    ...(expected !== undefined && { expected: showValue(expected) }),
    ...(seen !== undefined && { seen: showValue(seen) }),
    ...(withHint && hint !== undefined && { why: [label?.name ?? first, ...rest].join(' ') }),
  };
}
