import { isTime, type JsonObject } from '../jose/json.ts';
import { checkOptionMembers, isFunction, isText, isWithin, type OptionMembers, oneOf } from '../option-members.ts';
import { Refused } from '../refused.ts';
import { type Cutoffs, createCutoffs } from './cutoffs.ts';
import { createMemoryRevocationStore } from './memory-store.ts';
import {
  boundTime,
  type CutoffEvent,
  type CutoffKind,
  checkRecord,
  cutoffKinds,
  encodeMark,
  eventOfMark,
  isCutoffValue,
  maxRecords,
  maxTextLength,
  maxValueLength,
  type RevocationFollower,
  type RevocationRecord,
  type RevocationStore,
  RevocationsFull,
  timeOfMark,
} from './record.ts';

/** Options of {@link createRevocations}. */
export interface RevocationsOptions {
  /** Store of cutoffs. Default: the memory of this process. */
  readonly store?: RevocationStore;
  /** Longest lifetime of an access token in seconds (`exp` − `iat`); a longer one is refused. Default 86400. */
  readonly maxTokenLifetime?: number;
  /** Seconds by which clocks may differ. Default 5. */
  readonly clockTolerance?: number;
  /** Treatment of tokens after 60 s without contact to the store: `refuse` responds with 503. Default `accept`. */
  readonly stale?: 'accept' | 'refuse';
  /** Returns seconds since the epoch. Default: the clock of this host. */
  readonly now?: () => number;
}

/** A cutoff, by exactly one of `sub`, `sid`, `client_id` and `jti`. */
export interface Cutoff extends Partial<Readonly<Record<CutoffKind, string>>> {
  /** Issuer of the tokens, compared byte for byte with `iss`. */
  readonly issuer: string;
  /**
   * Seconds since the epoch. Tokens of a `sub` or `client_id` with this `iat` or an earlier one are refused; `sid` and `jti`
   * refuse each token. A time later than now becomes now. Default: the second before now, so that a later login is admitted.
   */
  readonly before?: number;
}

/** State of revocations, safe to show to an operator. */
export interface RevocationsStatus {
  /** Number of cutoffs that apply. */
  readonly cutoffs: number;
  /** True once everything in the store was loaded. */
  readonly loaded: boolean;
  /** Seconds since the store last responded. */
  readonly secondsWithoutContact: number;
  /** Cutoffs that were rejected because there were too many. */
  readonly rejected: number;
  /** Values of the store that were not valid: another program writes to it. */
  readonly invalid: number;
}

/** Cutoffs that end access tokens before they expire. */
export interface Revocations {
  /** Sets a cutoff. Resolves once it is stored and applied here. Rejects with `TypeError` for one that cannot work. */
  revoke(cutoff: Cutoff): Promise<void>;
  /** Resolves once everything in the store was loaded. */
  ready(): Promise<void>;
  /** Returns the number of cutoffs and the contact to the store. */
  status(): RevocationsStatus;
  /** Ends the contact to the store. */
  close(): void;
}

export interface EventCutoff {
  readonly issuer: string;
  readonly kind: CutoffKind;
  readonly value: string;
  /** Seconds since the epoch. Default: the second before now. */
  readonly before?: number | undefined;
  readonly event: CutoffEvent;
}

/** Revocations as the rest of the package uses them. */
export type RevocationParts = ReturnType<typeof openParts>;

/** Seconds without contact after which `stale` decides. */
const staleAfter = 60;
const maxLifetime = 366 * 86_400;

const isStore = (value: unknown): boolean =>
  ['write', 'follow', 'unfollow'].every((name) => isFunction(Reflect.get(Object(value), name)));
const members: OptionMembers<RevocationsOptions> = {
  store: [isStore, 'write createMemoryRevocationStore(), or await createRedisRevocationStore(url)'],
  maxTokenLifetime: [isWithin(1, maxLifetime), `write seconds from 1 to ${maxLifetime}`],
  clockTolerance: [isWithin(0, 300), 'write seconds from 0 to 300'],
  stale: oneOf('accept', 'refuse'),
  now: [isFunction, 'write a function that returns seconds'],
};
const parts = new WeakMap<object, RevocationParts>();

/** Returns the parts of revocations. Throws `TypeError` for a value that this copy of the package has not created. */
export function readRevocations(caller: string, revocations: unknown): RevocationParts {
  const found = parts.get(Object(revocations));
  if (found === undefined) throw new TypeError(`${caller}: write createRevocations(), of this copy of the package`);
  return found;
}

/**
 * Creates revocations. Pass them to the resource servers as `revocations`. Throws `TypeError` for options that cannot work.
 *
 * @example
 * const revocations = createRevocations();
 * const server = createResourceServer({ issuer: 'idp.example', audience: 'https://api.example/', revocations });
 * await revocations.revoke({ issuer: 'https://idp.example/', sub: 'mallory' });
 */
export function createRevocations(options: RevocationsOptions = {}): Revocations {
  checkOptionMembers<RevocationsOptions>('createRevocations', options, members);
  const own = openParts(options);
  const { set, ready, status, close } = own;
  const revoke = async (cutoff: Cutoff): Promise<void> => set([{ ...readCutoff(cutoff), event: 'revoke' }]);
  const revocations: Revocations = { revoke, ready, status, close };
  parts.set(revocations, own);
  return revocations;
}

function openParts({ stale = 'accept', now = () => Date.now() / 1000, ...options }: RevocationsOptions) {
  const { store = createMemoryRevocationStore(), maxTokenLifetime = 86_400, clockTolerance = 5 } = options;
  const cutoffs = createCutoffs(maxTokenLifetime + clockTolerance);
  const contact = followStore(store, cutoffs, { now, clockTolerance, maxTokenLifetime });
  let rejected = 0;

  const write = async (records: readonly RevocationRecord[]): Promise<void> => {
    try {
      if (cutoffs.size() >= maxRecords) cutoffs.expire(now());
      const isNew = ([scope, kind, name]: RevocationRecord): boolean => cutoffs.markOf(scope, kind, name) === undefined;
      if (cutoffs.size() + records.filter(isNew).length > maxRecords) throw new RevocationsFull();
      await store.write(records);
    } catch (error) {
      if (error instanceof RevocationsFull) rejected++;
      throw error;
    }
  };

  const own = {
    /** Refuses a token that is valid otherwise. */
    check(claims: JsonObject): Refused | undefined {
      const { exp, iat } = claims;
      if (typeof exp === 'number' && typeof iat === 'number' && exp - iat > maxTokenLifetime) {
        const context = { lifetime: exp - iat, longest: maxTokenLifetime };
        return new Refused('token_lifetime_too_long', { context });
      }
      if (own.onNoSession !== undefined && claims['sid'] === undefined) own.onNoSession();
      const revoked = own.refuseRevoked(claims);
      if (revoked !== undefined) return revoked;
      const isUnknown = stale === 'refuse' && contact.secondsWithout() > staleAfter;
      return isUnknown ? new Refused('revocation_unknown') : undefined;
    },
    refuseRevoked(claims: JsonObject): Refused | undefined {
      const found = cutoffs.find(claims);
      if (found?.isCertain !== true) return undefined;
      const { mark, kind } = found;
      const since = new Date(timeOfMark(mark)).toISOString();
      return new Refused('revoked_token', { context: { revocation: eventOfMark(mark), by: kind, since } });
    },
    /** Number of the cutoffs that may refuse a token without `iat`: only a response of its issuer after those can tell. */
    doubtOf(claims: JsonObject): number | undefined {
      const found = cutoffs.find(claims);
      return found?.isCertain === false ? found.since : undefined;
    },
    /** Sets cutoffs of events. Resolves once they are stored and applied here. */
    set(wanted: readonly EventCutoff[]): Promise<void> {
      const seconds = now();
      return write(
        wanted.map(({ issuer, kind, value, before = Math.floor(seconds) - 1, event }) => {
          const time = boundTime(before, seconds, clockTolerance);
          const until = Math.ceil(Math.max(time, seconds) + maxTokenLifetime + clockTolerance);
          return [issuer, kind, value, encodeMark(time, event), until];
        }),
      );
    },
    /** Stores that a stream was verified now, for some seconds. */
    noteVerified: (stream: string, seconds: number): Promise<void> =>
      write([[`stream:${stream}`, 'verified', '', encodeMark(now(), 'revoke'), Math.ceil(now() + seconds)]]),
    /** Called for each checked token without `sid`. */
    onNoSession: undefined as (() => void) | undefined,
    status: (): RevocationsStatus => ({ cutoffs: cutoffs.size(), rejected, ...contact.status() }),
    ...{ follow: cutoffs.follow, markOf: cutoffs.markOf, records: cutoffs.records },
    ...{ ready: contact.ready, isLoaded: () => contact.status().loaded, close: contact.close },
  };
  return own;
}

function followStore(
  store: RevocationStore,
  cutoffs: Cutoffs,
  { now, ...limits }: { now: () => number; clockTolerance: number; maxTokenLifetime: number },
) {
  let contactAt = performance.now();
  let invalid = 0;
  let loaded = false;
  let settle = (): void => {};
  const whenLoaded = new Promise<void>((resolve) => {
    settle = resolve;
  });
  const secondsWithout = (): number => (performance.now() - contactAt) / 1000;
  const follower: RevocationFollower = {
    apply(records) {
      const seconds = now();
      const corrected: RevocationRecord[] = [];
      for (const record of records) {
        const checked = checkRecord(record, { now: seconds, ...limits });
        if (checked !== undefined && cutoffs.size() < 2 * maxRecords) cutoffs.add(checked, seconds);
        if (checked?.[3] === record[3]) continue;
        invalid++;
        if (checked !== undefined) corrected.push(checked);
      }
      return corrected;
    },
    noteInvalid(count) {
      invalid += count;
    },
    onContact() {
      contactAt = performance.now();
      loaded = true;
      settle();
    },
    records: cutoffs.records,
  };
  store.follow(follower);
  return {
    secondsWithout,
    ready: () => whenLoaded,
    status: () => ({ loaded, secondsWithoutContact: secondsWithout(), invalid }),
    close: () => store.unfollow(follower),
  };
}

/** Reads a cutoff. Throws `TypeError` for one that cannot work; the message does not repeat its value. */
export function readCutoff(cutoff: Cutoff) {
  const { issuer, before, ...others }: Partial<Cutoff> = Object(cutoff);
  const [key, ...more] = Object.entries(others).filter(([, value]) => value !== undefined);
  const kind = cutoffKinds.find((each) => each === key?.[0]);
  const value = key?.[1];
  if (kind === undefined || more.length > 0 || !isCutoffValue(value)) {
    const kinds = cutoffKinds.join(', ');
    throw new TypeError(`revoke: write exactly one of ${kinds}, with 1 to ${maxValueLength} characters`);
  }
  if (!isText(issuer) || issuer.length > maxTextLength)
    throw new TypeError('revoke: write the issuer of the tokens, as iss has it');
  if (before !== undefined && !isTime(before))
    throw new TypeError('revoke: before is a time in seconds since the epoch');
  return { issuer, kind, value, before };
}
