import type { JsonObject } from '../jose/json.ts';
import { type CutoffKind, cutoffKinds, isKind, type RecordKind, type RevocationRecord, timeOfMark } from './record.ts';

interface FoundCutoff {
  readonly kind: CutoffKind;
  readonly mark: number;
  /** False for a token without `iat` where the time decides: only a new response of its issuer can tell. */
  readonly isCertain: boolean;
  /** Grows with each cutoff of a later time, of the user or of the client. Absent if a session or a token is ended. */
  readonly since?: number;
}

export type Cutoffs = ReturnType<typeof createCutoffs>;

/** Marks of one issuer and kind, by value. The key is the string as parsed: a concatenated one takes five times the memory. */
interface Table {
  readonly scope: string;
  readonly kind: string;
  readonly marks: Map<string, number>;
  /** Later ends of retention, of values that were added again. */
  readonly renewed: Map<string, number>;
  /** Listeners of open streams, by value. */
  readonly followers: Map<string, Set<() => void>>;
}

const bucketsPerLifetime = 64;
/** Expired values that one `add` removes. More than it adds, so that they cannot pile up. */
const removedPerAdd = 8;
/** Listeners that one event-loop iteration calls, so that a cutoff of many streams delays no request. */
const calledPerIteration = 100;

const steady = (): number => performance.now() / 1000;

/** Creates cutoffs without any. `lifetime` in seconds: retention ends at multiples of a part of it. Times are since the epoch. */
export function createCutoffs(lifetime: number) {
  const width = Math.max(1, Math.ceil(lifetime / bucketsPerLifetime));
  const scopes = new Map<string, Partial<Record<RecordKind, Table>>>();
  /** Values that share their end of retention, by table. */
  const buckets = new Map<number, Map<Table, Set<string>>>();
  /** Ends on a clock that never steps back: a wall clock that is ahead for a while must remove nothing. */
  const steadyEnds = new Map<number, number>();
  const due = new Set<() => void>();
  let size = 0;

  const tableOf = (scope: string, kind: RecordKind): Table => {
    const tables = scopes.get(scope) ?? {};
    const table = tables[kind] ?? { scope, kind, marks: new Map(), renewed: new Map(), followers: new Map() };
    tables[kind] = table;
    scopes.set(scope, tables);
    return table;
  };

  const retain = (table: Table, name: string, until: number, now: number): void => {
    const end = Math.ceil(until / width) * width;
    const bucket = buckets.get(end) ?? new Map<Table, Set<string>>();
    buckets.set(end, bucket.set(table, (bucket.get(table) ?? new Set()).add(name)));
    steadyEnds.set(end, Math.max(steadyEnds.get(end) ?? 0, steady() + until - now));
    if (table.marks.has(name)) table.renewed.set(name, Math.max(end, table.renewed.get(name) ?? 0));
  };

  const callDue = (): void => {
    let left = calledPerIteration;
    for (const listener of due) {
      if (left-- === 0) return void setTimeout(callDue, 0);
      due.delete(listener);
      listener();
    }
  };

  const removeExpired = (now: number, most: number): void => {
    let left = most;
    const steadyNow = steady();
    for (const [end, bucket] of buckets) {
      if (end > now || (steadyEnds.get(end) ?? 0) > steadyNow) continue;
      for (const [table, names] of bucket) {
        for (const name of names) {
          if (left-- === 0) return;
          names.delete(name);
          if ((table.renewed.get(name) ?? 0) > end) continue;
          table.renewed.delete(name);
          if (table.marks.delete(name)) size--;
        }
        bucket.delete(table);
      }
      buckets.delete(end);
      steadyEnds.delete(end);
    }
  };

  return {
    add([scope, kind, name, mark, until]: RevocationRecord, now: number): void {
      removeExpired(now, removedPerAdd);
      if (until <= now || !isKind(kind)) return;
      const table = tableOf(scope, kind);
      retain(table, name, until, now);
      const known = table.marks.get(name);
      if (known === undefined) size++;
      if (known !== undefined && known >= mark) return;
      table.marks.set(name, mark);
      const followers = table.followers.get(name);
      if (followers === undefined) return;
      if (due.size === 0) setTimeout(callDue, 0);
      for (const listener of followers) due.add(listener);
    },
    /** Calls `listener` after each new cutoff that may refuse these claims. Returns the function that stops this. */
    follow({ iss, sub, sid, jti, client_id: client, azp }: JsonObject, listener: () => void): () => void {
      const values = { sub, sid, jti: typeof jti === 'number' ? String(jti) : jti, client_id: client ?? azp };
      const followed = cutoffKinds.flatMap((kind): [Table, string][] => {
        const value = values[kind];
        return typeof iss === 'string' && typeof value === 'string' ? [[tableOf(iss, kind), value]] : [];
      });
      for (const [{ followers }, value] of followed) {
        followers.set(value, (followers.get(value) ?? new Set()).add(listener));
      }
      return () => {
        due.delete(listener);
        for (const [{ followers }, value] of followed) {
          const listeners = followers.get(value);
          if (listeners?.delete(listener) === true && listeners.size === 0) followers.delete(value);
        }
      };
    },
    find(claims: JsonObject): FoundCutoff | undefined {
      const { iss, iat, sub, sid, jti, client_id: clientId = claims['azp'] } = claims;
      const tables = size === 0 || typeof iss !== 'string' ? undefined : scopes.get(iss);
      if (tables === undefined) return undefined;
      // Read one by one: a loop over names costs as much as the maps. Some providers number their tokens.
      const ofSid = markIn(tables.sid, sid);
      if (ofSid !== undefined) return { kind: 'sid', mark: ofSid, isCertain: true };
      const ofJti = markIn(tables.jti, typeof jti === 'number' ? String(jti) : jti);
      if (ofJti !== undefined) return { kind: 'jti', mark: ofJti, isCertain: true };
      const ofSub = markIn(tables.sub, sub);
      const ofClient = markIn(tables.client_id, clientId);
      if (ofSub === undefined && ofClient === undefined) return undefined;
      const isOfSub = (ofSub ?? 0) >= (ofClient ?? 0);
      const mark = (isOfSub ? ofSub : ofClient) ?? 0;
      // Rounded as the mark is.
      if (typeof iat === 'number' && Math.round(iat * 1000) > timeOfMark(mark)) return undefined;
      const since = (ofSub ?? 0) + (ofClient ?? 0);
      return { kind: isOfSub ? 'sub' : 'client_id', mark, isCertain: typeof iat === 'number', since };
    },
    markOf: (scope: string, kind: string, name: string): number | undefined =>
      isKind(kind) ? scopes.get(scope)?.[kind]?.marks.get(name) : undefined,
    expire: (now: number): void => removeExpired(now, Number.POSITIVE_INFINITY),
    *records(): Iterable<RevocationRecord> {
      for (const [end, bucket] of buckets) {
        for (const [table, names] of bucket) {
          for (const name of names) {
            const mark = table.marks.get(name);
            if (mark !== undefined) yield [table.scope, table.kind, name, mark, end];
          }
        }
      }
    },
    size: (): number => size,
  };
}

/** Returns the mark of a value; no cutoff is about anything but a string. */
function markIn(table: Table | undefined, value: unknown): number | undefined {
  return typeof value === 'string' ? table?.marks.get(value) : undefined;
}
