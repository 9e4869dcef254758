import type { KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { KeySet, KeySetState, ResumableKeySet, SavedKeySet } from './key-set.ts';

interface KeySetPoolOptions<Source> {
  /** Key sets that are open at the same time. Those with requests waiting for a fetch come in addition. */
  readonly maxOpen: number;
  readonly open: (source: Source, state: KeySetState) => ResumableKeySet;
}

interface OpenSet {
  readonly place: string;
  readonly keys: ResumableKeySet;
  waiting: number;
  isConfirmed: boolean;
  /** Store of its state once it is closed. */
  saved: LRUCache<string, SavedKeySet>;
}

/** Functions that the pooled key sets share. */
interface Doors<Source> {
  use(keys: PooledKeySet<Source>): OpenSet;
  refetch(opened: OpenSet): Promise<void> | undefined;
}

/** Key set of a location. A class, so that 100,000 issuers share its functions. */
class PooledKeySet<Source> implements KeySet {
  readonly place: string;
  readonly source: Source;
  readonly #doors: Doors<Source>;

  constructor(place: string, source: Source, doors: Doors<Source>) {
    this.place = place;
    this.source = source;
    this.#doors = doors;
  }

  find(kid: string, alg: string, nth?: number): KeyObject | undefined {
    return this.#doors.use(this).keys.find(kid, alg, nth);
  }

  get generation(): number {
    return this.#doors.use(this).keys.generation;
  }

  has(kid: string): boolean {
    return this.#doors.use(this).keys.has(kid);
  }

  usable(): boolean {
    return this.#doors.use(this).keys.usable();
  }

  refetch(): Promise<void> | undefined {
    return this.#doors.refetch(this.#doors.use(this));
  }
}

/** Bytes of the states of closed key sets: of those that have verified a token, and of the others. */
const savedBytes = { confirmed: 48 * 1024 * 1024, others: 16 * 1024 * 1024 } as const;
const createStates = (maxSize: number): LRUCache<string, SavedKeySet> => new LRUCache({ maxSize });
/** Bytes of a state in addition to its text. */
const bytesPerState = 1024;
/** Part of the open key sets that tokens with a false signature can take from those that have verified a token. */
const unconfirmedShare = 1 / 4;

/** Creates an empty pool. A key set beyond `maxOpen` is closed. Its saved state spares a fetch later, and allows no more attempts. */
export function createKeySetPool<Source>({ maxOpen, open }: KeySetPoolOptions<Source>) {
  const dispose = (opened: OpenSet, _place: string, reason: LRUCache.DisposeReason): void => {
    if (reason === 'evict') closeIdle(opened);
  };
  // Anyone can name an issuer in a token. So a key set is in `confirmed`, and moves there to the front, only by valid tokens.
  const confirmed = new LRUCache<string, OpenSet>({ max: maxOpen, dispose });
  const others = new LRUCache<string, OpenSet>({ max: maxOpen, dispose });
  /** Never closed, lest a request waits in vain. */
  const awaited = new Map<string, OpenSet>();
  const saved = { confirmed: createStates(savedBytes.confirmed), others: createStates(savedBytes.others) };
  /** Greater than the generation of every key set that was closed. */
  let generation = 0;
  let isClosed = false;

  function use({ place, source }: PooledKeySet<Source>): OpenSet {
    return awaited.get(place) ?? confirmed.peek(place) ?? others.get(place) ?? reopen(place, source);
  }

  function reopen(place: string, source: Source): OpenSet {
    makeRoom();
    const states = saved.confirmed.has(place) ? saved.confirmed : saved.others;
    const keys = open(source, { generation, saved: states.get(place) });
    states.delete(place);
    if (isClosed) keys.close();
    const opened: OpenSet = { place, keys, waiting: 0, isConfirmed: false, saved: states };
    others.set(place, opened);
    return opened;
  }

  function makeRoom(): void {
    while (confirmed.size + others.size >= maxOpen) {
      const isOverShare = others.size >= Math.max(1, maxOpen * unconfirmedShare);
      (isOverShare ? others : confirmed).pop();
    }
  }

  function closeIdle({ place, keys, saved: states }: OpenSet): void {
    const state = keys.save();
    states.set(place, state, { size: bytesPerState + (state.fetched?.length ?? 0) });
    generation = Math.max(generation, keys.generation + 1);
    keys.close();
  }

  function refetch(opened: OpenSet): Promise<void> | undefined {
    const fetched = opened.keys.refetch();
    if (fetched === undefined) return undefined;
    const { place } = opened;
    if (opened.waiting++ === 0) {
      confirmed.delete(place);
      others.delete(place);
      awaited.set(place, opened);
    }
    return fetched.then(() => {
      if (--opened.waiting > 0) return;
      awaited.delete(place);
      makeRoom();
      (opened.isConfirmed ? confirmed : others).set(place, opened);
    });
  }

  const doors: Doors<Source> = { use, refetch };
  return {
    /** Key set of a place. It is opened when it is first used, and again after it was closed; until then it costs nothing. */
    keysOf: (place: string, source: Source): KeySet => new PooledKeySet(place, source, doors),
    /** Called after these keys have verified a token. They are then kept open before keys that have verified none. */
    confirm(keys: KeySet): void {
      if (!(keys instanceof PooledKeySet) || confirmed.get(keys.place) !== undefined) return;
      const opened = awaited.get(keys.place) ?? others.peek(keys.place);
      if (opened === undefined) return;
      opened.isConfirmed = true;
      opened.saved = saved.confirmed;
      if (others.delete(keys.place)) confirmed.set(keys.place, opened);
    },
    /** Closes all of them. Keys that are loaded can be found until they are stale. */
    close(): void {
      isClosed = true;
      for (const each of [...awaited.values(), ...confirmed.values(), ...others.values()]) each.keys.close();
    },
  };
}
