import { EventEmitter, once } from 'node:events';
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
/** Time until a request completes and its checks are evaluated, in milliseconds. */
const patience = 1500;

export type Facts = Pick<DecisionDetail, 'facts' | 'explanation'>;

interface Entry {
  readonly decision: Decision;
  facts: Facts | undefined;
  /** False while its checks are evaluated. */
  isComplete: boolean;
}

/** `change`: a decision has its checks, and also every other event. */
type Events = Readonly<{ change: []; decisions: [StreamedDecisions]; note: [Note] }>;

export type Decisions = ReturnType<typeof createDecisions>;

/** Creates the memory of the console: the last decisions and events of the service. */
export function createDecisions(names: SettingNames) {
  const entries = new Map<string, Entry>();
  const notes: Note[] = [];
  const events = new EventEmitter<Events>().setMaxListeners(0);
  let batch: { readonly decisions: Decision[]; dropped: number } | undefined;
  const flush = (): void => {
    const streamed = batch;
    batch = undefined;
    if (streamed !== undefined) events.emit('decisions', streamed);
    events.emit('change');
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
    /** Keeps an admitted decision. `facts` are `undefined` if its checks are not evaluated. */
    keep(decision: Decision, facts: Promise<Facts> | undefined): void {
      const entry: Entry = { decision, facts: undefined, isComplete: facts === undefined };
      const kind = kindOf(decision);
      batch ??= openBatch();
      batch.decisions.push(decision);
      entries.set(decision.id, entry);
      const [oldest, ...others] = [...entries.values()].filter((each) => kindOf(each.decision) === kind);
      if (others.length >= kept[kind] && oldest !== undefined) entries.delete(oldest.decision.id);
      void facts?.then((resolved) => {
        entry.facts = resolved;
        entry.isComplete = true;
        events.emit('change');
      });
    },
    note(note: Note): void {
      notes.push(note);
      if (notes.length > maxNotes) notes.shift();
      events.emit('note', note);
    },
    /** Finds a decision by the id of the service, otherwise by the caller's own id. Waits for its checks. */
    async find(id: string): Promise<DecisionDetail | undefined> {
      const signal = AbortSignal.timeout(patience);
      while (get(id)?.isComplete !== true && !signal.aborted) await once(events, 'change', { signal }).catch(() => {});
      const entry = get(id);
      return entry && describe(entry, names);
    },
  };
}

/** A rule in report mode counts as refused. */
function kindOf({ reason }: Decision): keyof typeof kept {
  return reason === undefined ? 'others' : 'refused';
}

function describe({ decision, facts }: Entry, names: SettingNames): DecisionDetail {
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
