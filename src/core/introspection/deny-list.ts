import { isThenable } from '../attempt.ts';
import type { JsonObject } from '../jose/json.ts';
import { Refused } from '../refused.ts';

/** Check that decides if a valid token is denied. */
export interface DenyCheck {
  /**
   * Reports whether a token with these claims, signed by the key of this `kid`, is denied: `true` or `false`, or a promise of
   * it. Called at every request. If it throws, rejects or returns anything else, the request gets 503.
   */
  denies(claims: JsonObject, kid: string | undefined): boolean | Promise<boolean>;
}

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
  }

  const has = (kind: DenyKind, value: unknown): boolean => {
    if (typeof value !== 'string') return false;
    const until = table[kind].get(value);
    return until !== undefined && until > now();
  };

  return {
    add(entry) {
      const parsed = parseEntry(entry.kind, entry);
      if (count(table) >= maxEntries) sweep();
      if (count(table) >= maxEntries && !table[parsed.kind].has(parsed.value)) throw full(maxEntries);
      put(table, parsed);
    },
    remove: ({ kind, value }) => table[kind].delete(value),
    replace(denied) {
      table = read(denied);
    },
    list() {
      sweep();
      return kinds.flatMap((kind) =>
        [...table[kind]].map(([value, until]) => ({ kind, value, ...(Number.isFinite(until) && { until }) })),
      );
    },
    // Some providers number their tokens, and in JSON a number differs from a string.
    denies: ({ jti, sub }, kid) =>
      has('jti', typeof jti === 'number' ? String(jti) : jti) || has('sub', sub) || has('kid', kid),
  };
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

type Answer = Refused | undefined;

export type RefuseDenied = (claims: JsonObject, kid: string | undefined) => Answer | Promise<Answer>;

/** Queries a deny list, and admits no request if the query fails. A refusal is returned. */
export function createRefuseDenied(list: DenyCheck): RefuseDenied {
  return (claims, kid) => {
    try {
      const answer: unknown = list.denies(claims, kid);
      return isThenable(answer) ? Promise.resolve(answer).then(readAnswer, unavailable) : readAnswer(answer);
    } catch (cause) {
      return unavailable(cause);
    }
  };
}

/** `undefined`, of a function without a return value, must not admit a token; nor must 0 and 1 be guessed. */
function readAnswer(answer: unknown): Answer {
  if (answer === false) return undefined;
  if (answer === true) return new Refused('revoked_token');
  return unavailable(new TypeError('denyList: denies(claims, kid) must return true or false, or a promise of it'));
}

function unavailable(cause: unknown): Refused {
  return new Refused('deny_list_unavailable', { cause });
}
