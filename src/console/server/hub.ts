import { docsUrl, type Failure, failures } from '../../failures.ts';
import type {
  Decision,
  DecisionBatch,
  DecisionDetail,
  DecisionFacts,
  Note,
  StreamedDecisions,
} from '../../server/console/wire.ts';
import { formatFix, type SettingNames } from '../../server/settings/setting-names.ts';

/** Number of kept decisions. */
const maxRefused = 200;
const maxOthers = 100;
/** Number of kept events of the service. */
const maxNotes = 30;

export type HubEvent =
  | { readonly type: 'decisions'; readonly streamed: StreamedDecisions }
  /** Checks of a decision arrived. */
  | { readonly type: 'facts' }
  | { readonly type: 'note'; readonly note: Note };

export interface Hub {
  take(batch: DecisionBatch): void;
  note(note: Note): void;
  /** Finds a decision by the id of the service, otherwise by the caller's own id. */
  find(id: string): DecisionDetail | undefined;
  /** Kept decisions, oldest first. */
  recent(): readonly Decision[];
  notes(): readonly Note[];
  subscribe(listener: (event: HubEvent) => void): () => void;
}

/** Creates a hub. It keeps more refused decisions than others. */
export function createHub(names: SettingNames): Hub {
  const refused = createRing(maxRefused);
  const others = createRing(maxOthers);
  const notes: Note[] = [];
  const listeners = new Set<(event: HubEvent) => void>();
  const publish = (event: HubEvent): void => {
    for (const listener of listeners) listener(event);
  };
  return {
    take({ decisions, facts, dropped }) {
      for (const decision of decisions) (decision.reason === undefined ? others : refused).add(decision);
      for (const each of facts) if (!refused.addFacts(each)) others.addFacts(each);
      if (facts.length > 0) publish({ type: 'facts' });
      if (decisions.length + dropped > 0) publish({ type: 'decisions', streamed: { decisions, dropped } });
    },
    note(note) {
      notes.push(note);
      if (notes.length > maxNotes) notes.shift();
      publish({ type: 'note', note });
    },
    find(id) {
      const kept = refused.get(id) ?? others.get(id) ?? refused.findChosen(id) ?? others.findChosen(id);
      return kept === undefined ? undefined : describeKept(kept, names);
    },
    recent: () => [...refused.list(), ...others.list()].toSorted((one, other) => (one.at < other.at ? -1 : 1)),
    notes: () => notes,
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

interface Kept {
  readonly decision: Decision;
  facts: DecisionFacts | undefined;
}

interface Ring {
  add(decision: Decision): void;
  addFacts(facts: DecisionFacts): boolean;
  get(id: string): Kept | undefined;
  findChosen(id: string): Kept | undefined;
  list(): readonly Decision[];
}

function createRing(size: number): Ring {
  const kept = new Map<string, Kept>();
  return {
    add(decision) {
      kept.set(decision.id, { decision, facts: undefined });
      const [oldest] = kept.keys();
      if (kept.size > size && oldest !== undefined) kept.delete(oldest);
    },
    addFacts(facts) {
      const one = kept.get(facts.id);
      if (one !== undefined) one.facts = facts;
      return one !== undefined;
    },
    get: (id) => kept.get(id),
    findChosen: (id) => [...kept.values()].findLast(({ decision }) => decision.requestId === id),
    list: () => [...kept.values()].map(({ decision }) => decision),
  };
}

function describeKept({ decision, facts }: Kept, names: SettingNames): DecisionDetail {
  const { reason } = decision;
  const failure: Failure | undefined =
    reason !== undefined && Object.hasOwn(failures, reason)
      ? failures[reason as keyof typeof failures] // an own member, as just seen
      : undefined;
  return {
    decision,
    walked: facts !== undefined,
    facts: facts?.facts ?? [],
    ...(facts?.explanation !== undefined && { explanation: facts.explanation }),
    ...(failure !== undefined && {
      refusal: {
        description: failure.description,
        fix: formatFix(failure, names),
        docs: `${docsUrl}refusals.md#${reason}`,
      },
    }),
  };
}

/** Time until the decision about a completed request arrives with its checks, in milliseconds. */
const patience = 1500;

/** Returns one decision. Waits for the checks of a request that has just completed. */
export function awaitDecision(hub: Hub, id: string): Promise<DecisionDetail | undefined> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      end();
      resolve(hub.find(id));
    };
    const timer = setTimeout(finish, patience);
    const end = hub.subscribe(() => isComplete(hub.find(id)) && finish());
    if (isComplete(hub.find(id))) finish();
  });
}

function isComplete(detail: DecisionDetail | undefined): boolean {
  return detail !== undefined && (detail.walked || Date.now() - Date.parse(detail.decision.at) > patience);
}
