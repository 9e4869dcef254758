import { EventEmitter, once } from 'node:events';
import { limitTime } from '../../core/attempt.ts';
import { docsUrl, type Failure, failures } from '../../core/failures.ts';
import type { Decision, DecisionDetail, Note, StreamedDecisions } from '../../server/console/wire.ts';
import { formatFix, type SettingNames } from '../../server/settings/setting-names.ts';

/** Number of kept decisions. Admitted requests do not displace refused ones. */
const kept = { refused: 200, others: 100 };
/** Number of decisions kept in one interval. The others are only counted. */
const taken = { refused: 40, others: 20 };
/** Interval of streamed decisions, in milliseconds. */
const interval = 100;
/** Number of kept events of the service. */
const maxNotes = 30;
/** Time until a request completes, and until its checks are evaluated, in seconds. */
const patience = 1.5;

export type Facts = Pick<DecisionDetail, 'facts' | 'explanation'>;

/** `facts` are `undefined` if its checks are not evaluated. */
type Entry = Readonly<{ decision: Decision; facts: Promise<Facts> | undefined }>;

export type Decisions = ReturnType<typeof createDecisions>;

/** Creates the memory of the console: the last decisions and events of the service. */
export function createDecisions(names: SettingNames) {
  const entries = new Map<string, Entry>();
  const notes: Note[] = [];
  const events = new EventEmitter<{ decisions: [StreamedDecisions]; note: [Note] }>().setMaxListeners(0);
  let batch: { readonly decisions: Decision[]; dropped: number } | undefined;
  const flush = (): void => {
    const streamed = batch;
    batch = undefined;
    if (streamed !== undefined) events.emit('decisions', streamed);
  };
  const openBatch = () => {
    setTimeout(flush, interval).unref();
    return { decisions: [], dropped: 0 };
  };
  const get = (id: string): Entry | undefined =>
    entries.get(id) ?? [...entries.values()].findLast(({ decision }) => decision.requestId === id);
  return {
    events,
    notes: (): readonly Note[] => notes,
    /** Kept decisions, oldest first, except those that the next event has. */
    recent: () =>
      [...entries.values()].map(({ decision }) => decision).filter((each) => !batch?.decisions.includes(each)),
    /** Counts a decision. Returns false if it cannot be kept, because too many came at once. */
    admit(kind: keyof typeof taken): boolean {
      batch ??= openBatch();
      const isFull = batch.decisions.filter((each) => kindOf(each) === kind).length >= taken[kind];
      if (isFull) batch.dropped++;
      return !isFull;
    },
    /** Keeps an admitted decision. */
    keep(decision: Decision, facts: Entry['facts']): void {
      const kind = kindOf(decision);
      batch ??= openBatch();
      batch.decisions.push(decision);
      entries.set(decision.id, { decision, facts });
      const [oldest, ...others] = [...entries.values()].filter((each) => kindOf(each.decision) === kind);
      if (others.length >= kept[kind] && oldest !== undefined) entries.delete(oldest.decision.id);
    },
    note(note: Note): void {
      notes.push(note);
      if (notes.length > maxNotes) notes.shift();
      events.emit('note', note);
    },
    /** Finds a decision by the id of the service, otherwise by the caller's own id. Waits for its checks. */
    async find(id: string): Promise<DecisionDetail | undefined> {
      const signal = AbortSignal.timeout(patience * 1000);
      while (!get(id) && !signal.aborted) await once(events, 'decisions', { signal }).catch(() => {});
      const { decision, facts } = get(id) ?? {};
      return decision && describe(decision, facts && (await limitTime(facts, patience, () => undefined)), names);
    },
  };
}

/** A rule in report mode counts as refused. */
function kindOf({ reason }: Decision): keyof typeof kept {
  return reason === undefined ? 'others' : 'refused';
}

function describe(decision: Decision, facts: Facts | undefined, names: SettingNames): DecisionDetail {
  const { reason = '' } = decision;
  const docs = `${docsUrl}refusals.md#${reason}`;
  const failure = new Map<string, Failure>(Object.entries(failures)).get(reason);
  return {
    ...{ decision, walked: facts !== undefined, facts: facts?.facts ?? [] },
    ...(facts?.explanation !== undefined && { explanation: facts.explanation }),
    ...(failure !== undefined && {
      refusal: { description: failure.description, fix: formatFix(failure, names), docs },
    }),
  };
}
