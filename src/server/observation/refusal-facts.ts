import type { Comparison, Evidence } from '../../check.ts';
import { showText, showValue } from '../../explain/shown-text.ts';
import type { LogFields } from './log.ts';

/** Values of a list that are shown, at most. */
const maxValues = 10;
/** Characters of a `kid` that are shown. */
const maxKid = 64;
/** How every JOSE header begins: whoever puts a token into a claim must not get it into the log. */
const tokenStart = /eyJ[\w-]{8}/;

/** What a check wanted and what it saw, and the key that the token names: escaped and of bounded length. */
export function describeRefusal({ compare, kid }: Evidence): LogFields {
  const facts = compare?.();
  return {
    ...(facts !== undefined && describeComparison(facts)),
    ...(kid !== undefined && { kid: show(kid, maxKid) }),
  };
}

function describeComparison({ expected, received, time }: Comparison): LogFields {
  if (time !== undefined) return { expected: describeBounds(time), received: describeTime(received, time.now) };
  return {
    ...(expected !== undefined && { expected: typeof expected === 'string' ? show(expected) : showList(expected) }),
    ...(received !== undefined && { received: isList(received) ? showList(received) : show(received) }),
  };
}

function isList(value: unknown): value is Iterable<unknown> {
  return Array.isArray(value) || value instanceof Set;
}

function showList(values: Iterable<unknown>): readonly string[] {
  const all = [...values];
  const shown = all.slice(0, maxValues).map((value) => show(value));
  return all.length > maxValues ? [...shown, `… (${all.length} in all)`] : shown;
}

function show(value: unknown, length?: number): string {
  const text = showValue(value, length);
  return tokenStart.test(text) ? showText('(withheld: it looks like a token)') : text;
}

function describeBounds({ past, ahead }: { readonly past: number; readonly ahead: number }): string {
  if (past === Number.POSITIVE_INFINITY) return `at most ${ahead} s ahead`;
  if (ahead === Number.POSITIVE_INFINITY) return `at most ${past} s ago`;
  return `from ${past} s ago to ${ahead} s ahead`;
}

/** A time of a token in UTC, and its distance in seconds, which a difference between two clocks is read from. */
function describeTime(value: unknown, now: number): string {
  if (typeof value !== 'number') return show(value);
  const date = new Date(value * 1000);
  const text = Number.isNaN(date.getTime()) ? String(value) : date.toISOString();
  const distance = Math.round((value - now) * 1000) / 1000;
  return `${text} (${Math.abs(distance)} s ${distance > 0 ? 'ahead' : 'ago'})`;
}
