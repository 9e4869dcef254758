import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { codeOf, showText } from '../core/shown-text.ts';
import type { Rules } from '../gate/match/rules.ts';
import { createReplay, type RecordedDecision, type Replayed, readRecorded } from '../gate/review/rules-replay.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { fail } from './commands/failure.ts';
import { type Flags, readTime } from './commands/flags.ts';

/** Exit status if a decision changes. */
const changed = 1;
/** Exit status for a file that cannot be read (sysexits.h). */
const noInput = 66;

type Change = Extract<Replayed, { readonly kind: 'changed' }>;

interface Group extends Omit<Change, 'kind'> {
  readonly before: RecordedDecision;
  count: number;
}

/** `portcullis rules replay`: decides the requests of an audit trail by other rules. Exit status 0, 1, 66 or 69. */
export async function replayTrail(
  trail: string,
  rules: Rules,
  { since, until, json }: Flags<'rules'>['values'],
): Promise<number> {
  const [from, to] = [readTime('since', since), readTime('until', until)];
  const replay = createReplay(rules);
  const groups = new Map<string, Group>();
  const unknown = new Map<string, number>();
  const countUnknown = (fact: string): void => void unknown.set(fact, (unknown.get(fact) ?? 0) + 1);
  let decisions = 0;
  for await (const text of readLines(trail)) {
    const recorded = readRecorded(text);
    if (recorded === undefined) {
      countUnknown('unreadable');
      continue;
    }
    const seconds = recorded.time / 1000;
    if (seconds < (from ?? seconds) || seconds >= (to ?? Number.POSITIVE_INFINITY)) continue;
    decisions++;
    const replayed = replay(recorded);
    if (replayed.kind === 'unknown') countUnknown(replayed.fact);
    if (replayed.kind !== 'changed') continue;
    const { kind: _, ...change } = replayed;
    const key = JSON.stringify([change, recorded.decision, recorded.reason]);
    const group = groups.get(key) ?? { ...change, before: recorded, count: 0 };
    group.count++;
    groups.set(key, group);
  }
  const result = {
    decisions,
    changes: [...groups.values()].toSorted((a, b) => b.count - a.count),
    unknown: [...unknown].toSorted(([, a], [, b]) => b - a),
  };
  process.stdout.write(json === true ? formatJson(result) : formatText(result));
  if (groups.size > 0) return changed;
  return unknown.size > 0 ? exitCodes.unavailable : exitCodes.ok;
}

/** Reads the lines that are not empty. */
async function* readLines(trail: string): AsyncGenerator<string> {
  const input = trail === '-' ? process.stdin : createReadStream(trail);
  // An interface does not report the errors of its input.
  const failed = new Promise<never>((_resolve, reject) => input.once('error', reject));
  failed.catch(() => {});
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([lines.next(), failed]);
      if (next.done === true) break;
      if (next.value !== '') yield next.value;
    }
  } catch (error) {
    throw fail(`the audit trail ${showText(trail)} cannot be read (${codeOf(error)}).`, noInput);
  }
}

interface Result {
  readonly decisions: number;
  readonly changes: readonly Group[];
  readonly unknown: readonly (readonly [fact: string, count: number])[];
}

function formatText({ decisions, changes, unknown }: Result): string {
  const sections = changes.map(({ rule, before, decision, reason = '', needs, count }) => {
    const after = `${`${decision} ${reason}`.trim()}${needs.length === 0 ? '' : `, needs ${needs.join(reason === 'no_accepted_scope' ? ' or ' : ' ')}`}`;
    const { host = '', path = '', id = '' } = before.line;
    const example = `${before.method} ${String(host)}${String(path)}`;
    return (
      `${rule}: ${count} ${`${before.decision} ${before.reason ?? ''}`.trim()} → ${after}\n` +
      `  such as ${showText(example)}, ${new Date(before.time).toISOString()}, id ${showText(String(id))}\n`
    );
  });
  const [changing, open] = [changes.map(({ count }) => count), unknown.map(([, count]) => count)].map((counts) =>
    counts.reduce((sum, count) => sum + count, 0),
  );
  const facts = unknown.map(([fact, count]) => `${fact} ${count}`).join(', ');
  const total = `${decisions} decisions: ${changing} would change, ${open} unknown${facts === '' ? '' : ` (${facts})`}`;
  return `${sections.join('')}${total}\n`;
}

function formatJson({ decisions, changes, unknown }: Result): string {
  const shown = changes.map(({ before, ...change }) => {
    const { id, host, path } = before.line;
    const example = { time: before.line['time'], id, method: before.method, host, path };
    return { ...change, before: { decision: before.decision, reason: before.reason }, example };
  });
  return `${JSON.stringify({ version: 1, decisions, changes: shown, unknown: Object.fromEntries(unknown) })}\n`;
}
