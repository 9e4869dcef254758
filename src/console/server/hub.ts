import { docsUrl, type Failure, failures } from '../../core/failures.ts';
import type {
  Decision,
  DecisionBatch,
  DecisionDetail,
  DecisionFacts,
  Note,
  StreamedDecisions,
} from '../../server/console/wire.ts';
import { formatFix, type SettingNames } from '../../server/settings/setting-names.ts';

/** Number of kept decisions. Admitted requests do not displace refused ones. */
const limits = { others: 100, refused: 200 };
/** Number of kept events of the service. */
const maxNotes = 30;
export type HubEvent =
  | { readonly type: 'decisions'; readonly data: StreamedDecisions }
  /** Checks of a decision arrived. */
  | { readonly type: 'facts' }
  | { readonly type: 'note'; readonly data: Note };

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

interface Kept {
  readonly decision: Decision;
  facts?: DecisionFacts;
}

/** Creates a hub. */
export function createHub(names: SettingNames): Hub {
  const kept = { others: new Map<string, Kept>(), refused: new Map<string, Kept>() };
  const notes: Note[] = [];
  const listeners = new Set<(event: HubEvent) => void>();
  const publish = (event: HubEvent): void => {
    for (const listener of listeners) listener(event);
  };
  const keep = (decision: Decision): void => {
    const kind = decision.reason === undefined ? 'others' : 'refused';
    kept[kind].set(decision.id, { decision });
    const [oldest] = kept[kind].keys();
    if (kept[kind].size > limits[kind] && oldest !== undefined) kept[kind].delete(oldest);
  };
  const get = (id: string): Kept | undefined => kept.refused.get(id) ?? kept.others.get(id);
  const list = (): readonly Kept[] => [...kept.others.values(), ...kept.refused.values()];
  return {
    take({ decisions, facts, dropped }) {
      for (const decision of decisions) keep(decision);
      for (const each of facts) {
        const one = get(each.id);
        if (one !== undefined) one.facts = each;
      }
      if (facts.length > 0) publish({ type: 'facts' });
      if (decisions.length + dropped > 0) publish({ type: 'decisions', data: { decisions, dropped } });
    },
    note(note) {
      notes.push(note);
      if (notes.length > maxNotes) notes.shift();
      publish({ type: 'note', data: note });
    },
    find(id) {
      const found = get(id) ?? list().findLast(({ decision }) => decision.requestId === id);
      return found && describeKept(found, names);
    },
    recent: () =>
      list()
        .map(({ decision }) => decision)
        .toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at)),
    notes: () => notes,
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

function describeKept({ decision, facts }: Kept, names: SettingNames): DecisionDetail {
  const { reason = '' } = decision;
  const failure: Failure | undefined = Object.hasOwn(failures, reason)
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
