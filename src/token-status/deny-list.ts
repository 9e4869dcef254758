import type { JsonObject } from '../jose/json.ts';
import type { DenyCheck } from './deny-check.ts';

/**
 * Identifiers by which tokens are refused: `jti` (one token), `sub` (all tokens of a subject), `kid` (all that a key has
 * signed).
 */
export type DenyKind = 'jti' | 'sub' | 'kid';

/** One entry: tokens with this value are refused. */
export interface DenyEntry {
  readonly kind: DenyKind;
  /** Compared exactly. */
  readonly value: string;
  /** End of the denial, in seconds since the epoch. Default: never. */
  readonly until?: number;
}

/** Values by kind, each denied without end or until its time. */
export type DenyValues = Readonly<Partial<Record<DenyKind, readonly (string | Omit<DenyEntry, 'kind'>)[]>>>;

/** Options of {@link createDenyList}: what is denied from the start, and bounds. */
export interface DenyListOptions extends DenyValues {
  /** Entries at most; one more is refused with an error rather than another forgotten. Default 100 000. */
  readonly maxEntries?: number;
  /** Seconds since the epoch. Default: the clock of this machine. */
  readonly now?: () => number;
}

/** Tokens that are refused although they are valid; can be changed at any time, and holds from the next request on. */
export interface DenyList extends DenyCheck {
  /** Denies a value, or changes until when. Throws `TypeError` for an entry that is malformed, `RangeError` when full. */
  add(entry: DenyEntry): void;
  /** Lets tokens with this value in again; whether it was denied. */
  remove(entry: Pick<DenyEntry, 'kind' | 'value'>): boolean;
  /** Replaces all values; on malformed or too many values nothing changes. Throws like `add`. */
  replace(values: DenyValues): void;
  /** Returns the active entries. */
  list(): readonly DenyEntry[];
  /** Reports whether a token with these claims, signed by the key of this `kid`, is denied. */
  denies(claims: JsonObject, kid: string | undefined): boolean;
}

type Entries = Map<string, number>;
type Table = Readonly<Record<DenyKind, Entries>>;

const kinds = ['jti', 'sub', 'kid'] as const satisfies readonly DenyKind[];
const maxValueLength = 1024;

/**
 * Creates a deny list: for emergencies, between now and the expiry of the tokens. It is checked at every request, also for
 * cached tokens. Throws `TypeError` for invalid options.
 *
 * @example
 * const denyList = createDenyList({ kid: ['key-that-leaked'] });
 * denyList.add({ kind: 'sub', value: 'mallory', until: Date.now() / 1000 + 3600 });
 */
export function createDenyList(options: DenyListOptions = {}): DenyList {
  const { maxEntries = 100_000, now = () => Date.now() / 1000, ...values } = options;
  if (!(maxEntries >= 1)) throw new TypeError('maxEntries: write a number of entries, 1 or more');
  let table = read(values);
  let size = count(table);

  function read(denied: DenyValues): Table {
    const fresh = createTable();
    for (const [kind, listed] of Object.entries(denied)) {
      if (!Array.isArray(listed) || !Object.hasOwn(fresh, kind)) throw malformed();
      for (const each of listed as unknown[]) put(fresh, parseEntry(kind, each));
    }
    if (count(fresh) > maxEntries) throw full(maxEntries);
    return fresh;
  }

  function sweep(): void {
    const time = now();
    for (const kind of kinds) {
      for (const [value, until] of table[kind]) if (until <= time) table[kind].delete(value);
    }
    size = count(table);
  }

  const has = (kind: DenyKind, value: unknown): boolean => {
    if (typeof value !== 'string') return false;
    const until = table[kind].get(value);
    return until !== undefined && until > now();
  };

  return {
    add(entry) {
      const parsed = parseEntry(entry.kind, entry);
      if (size >= maxEntries) sweep();
      if (size >= maxEntries && !table[parsed.kind].has(parsed.value)) throw full(maxEntries);
      put(table, parsed);
      size = count(table);
    },
    remove({ kind, value }) {
      const removed = table[kind].delete(value);
      size = count(table);
      return removed;
    },
    replace(denied) {
      table = read(denied);
      size = count(table);
    },
    list() {
      sweep();
      return kinds.flatMap((kind) =>
        [...table[kind]].map(([value, until]) => ({ kind, value, ...(Number.isFinite(until) && { until }) })),
      );
    },
    // Some providers number their tokens, and in JSON a number differs from a string.
    denies: (claims, kid) =>
      size > 0 && (has('jti', nameOf(claims['jti'])) || has('sub', claims['sub']) || has('kid', kid)),
  };
}

function nameOf(jti: unknown): unknown {
  return typeof jti === 'number' ? String(jti) : jti;
}

function createTable(): Table {
  return { jti: new Map(), sub: new Map(), kid: new Map() };
}

function put(table: Table, { kind, value, until = Number.POSITIVE_INFINITY }: DenyEntry): void {
  table[kind].set(value, until);
}

/** Entries come from files too. */
function parseEntry(name: string, entry: unknown): DenyEntry {
  const kind = kinds.find((each) => each === name);
  const { value, until = Number.POSITIVE_INFINITY } = Object(typeof entry === 'string' ? { value: entry } : entry);
  const isValue = typeof value === 'string' && value !== '' && value.length <= maxValueLength;
  if (kind === undefined || !isValue || !(typeof until === 'number' && until > 0)) throw malformed();
  return { kind, value, until };
}

function count(table: Table): number {
  return kinds.reduce((sum, kind) => sum + table[kind].size, 0);
}

function malformed(): TypeError {
  return new TypeError(
    `A deny list has entries only under jti, sub and kid: each a text of 1 to ${maxValueLength} characters, or { value, until } with seconds since the epoch.`,
  );
}

function full(maxEntries: number): RangeError {
  return new RangeError(
    `The deny list is full: it has ${maxEntries} entries. Deny a kid or a sub instead of many tokens.`,
  );
}
