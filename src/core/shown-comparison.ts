import { createHmac, randomBytes } from 'node:crypto';
import type { Comparison } from './refused.ts';
import { showText, showValue } from './shown-text.ts';

type ShownComparison = { readonly [K in 'expected' | 'received']?: string | readonly string[] };

const maxValues = 10;
/** Start of every JOSE header: a token that a client has put into a claim must not get into the log. */
const tokenStart = /eyJ[\w-]{8}/;

/** Hides a value, or shows it if the log shows identities and it is not a secret. */
export type Disguise = (text: string, isSecret: boolean) => string;

/** Characters of a hash. */
const hashLength = 22;
let randomKey: Buffer | undefined;

/** Creates the disguise under a secret of the deployment. Default: a key of this process. */
export function createDisguise(mode: 'plain' | 'hashed', secret?: string): Disguise {
  return (text, isSecret) => {
    if (mode === 'plain' && !isSecret) return text;
    randomKey ??= randomBytes(32);
    return `#${createHmac('sha256', secret || randomKey)
      .update(text)
      .digest('base64url')
      .slice(0, hashLength)}`;
  };
}

export function showComparison(comparison: Comparison, disguise: Disguise = createDisguise('hashed')): ShownComparison {
  const { expected, received, time, identity, values } = comparison;
  if (identity === 'both') return {};
  if (time !== undefined) return { expected: describeBounds(time), received: describeTime(received, time.now) };
  const read = values?.map(({ name, value, isSecret }) => {
    // A string as JSON, so that it differs from a number, a boolean and `(absent)` of the same characters.
    return `${name} = ${value === undefined ? '(absent)' : disguise(show(JSON.stringify(value)), isSecret)}`;
  });
  return {
    ...(read !== undefined && { received: read }),
    ...(expected !== undefined && { expected: typeof expected === 'string' ? show(expected) : showList(expected) }),
    ...('received' in comparison &&
      identity === undefined && { received: isList(received) ? showList(received) : show(received ?? '(absent)') }),
  };
}

/** Formats a value, unless it looks like a token. */
export function show(value: unknown, length?: number): string {
  const shown = showValue(value, length);
  return tokenStart.test(shown) ? showText('(withheld: it looks like a token)') : shown;
}

/** Describes the seconds around now that a time may be in. */
export function describeBounds({ past, ahead }: { readonly past: number; readonly ahead: number }): string {
  if (past === Number.POSITIVE_INFINITY) return `at most ${ahead} s ahead`;
  if (ahead === Number.POSITIVE_INFINITY) return `at most ${past} s ago`;
  return `from ${past} s ago to ${ahead} s ahead`;
}

function isList(value: unknown): value is Iterable<unknown> {
  return Array.isArray(value) || value instanceof Set;
}

function showList(values: Iterable<unknown>): readonly string[] {
  const all = [...values];
  const shown = all.slice(0, maxValues).map((value) => show(value));
  return all.length > maxValues ? [...shown, `… (${all.length} in all)`] : shown;
}

/** Formats a time in UTC with its distance in seconds, which shows the difference between two clocks. */
function describeTime(value: unknown, now: number): string {
  if (typeof value !== 'number') return show(value);
  const date = new Date(value * 1000);
  const instant = Number.isNaN(date.getTime()) ? String(value) : date.toISOString();
  const distance = Math.round((value - now) * 1000) / 1000;
  return `${instant} (${Math.abs(distance)} s ${distance > 0 ? 'ahead' : 'ago'})`;
}
