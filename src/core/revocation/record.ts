import { isTime } from '../jose/json.ts';

/**
 * One fact of a store: its key (issuer or stream, kind, name), its mark, and the time until which it is retained, in seconds
 * since the epoch. The larger mark of a key wins, so the order of arrival does not matter.
 */
export type RevocationRecord = readonly [scope: string, kind: string, name: string, mark: number, until: number];

/** The process that a store keeps up to date. */
export interface RevocationFollower {
  /** Takes records, also known ones. Returns corrected ones: a time that cannot be right was replaced, and can be stored. */
  apply(records: readonly RevocationRecord[]): readonly RevocationRecord[];
  /** Counts values of the store that are not records: another program writes to it. */
  noteInvalid(count: number): void;
  /** Called when the store responds and everything that it has was applied. */
  onContact(): void;
  /** Lists all records that this process knows: a store that has lost its own takes them back. */
  records(): Iterable<RevocationRecord>;
}

/** Store of cutoffs. Write your own to share them between processes in another way. */
export interface RevocationStore {
  /**
   * Stores records and passes them to every follower. Resolves after both, and after this process has applied them. Rejects
   * with {@link RevocationsFull}, or with any other error if they are not stored.
   */
  write(records: readonly RevocationRecord[]): Promise<void>;
  /** Passes what is stored to the follower, and then every change. */
  follow(follower: RevocationFollower): void;
  /** Ends that. */
  unfollow(follower: RevocationFollower): void;
}

/** Kinds of cutoffs: the claim that is compared. */
export const cutoffKinds = ['sub', 'sid', 'client_id', 'jti'] as const;
export type CutoffKind = (typeof cutoffKinds)[number];
/** Kinds of records: cutoffs, and the last verification of a stream. */
export type RecordKind = CutoffKind | 'verified';

export function isKind(kind: string): kind is RecordKind {
  return kind === 'verified' || (cutoffKinds as readonly string[]).includes(kind);
}

/** Maximum number of characters of the value of a cutoff. */
export const maxValueLength = 1024;

export function isCutoffValue(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxValueLength;
}

/** Events that set cutoffs. A mark holds the position in this list: append only. */
export const cutoffEvents = [
  ...(['revoke', 'logout', 'session-revoked', 'account-disabled', 'account-purged', 'credential-compromise'] as const),
  ...(['sessions-revoked', 'credential-change', 'token-claims-change', 'assurance-level-change'] as const),
] as const;
export type CutoffEvent = (typeof cutoffEvents)[number];

/** Positions of events in one mark: a power of two that leaves 49 bits to milliseconds. */
const eventPlaces = 16;

/** Encodes a time (seconds) and an event in one number that is ordered by time. */
export function encodeMark(before: number, event: CutoffEvent): number {
  return Math.round(before * 1000) * eventPlaces + cutoffEvents.indexOf(event);
}

/** Time of a mark in milliseconds. */
export function timeOfMark(mark: number): number {
  return Math.floor(mark / eventPlaces);
}

/** Event of a mark. An event of a later release is shown as `revoke`. */
export function eventOfMark(mark: number): CutoffEvent {
  return cutoffEvents[mark % eventPlaces] ?? 'revoke';
}

/** Maximum number of characters of an issuer or a name: another program may have written them. */
export const maxTextLength = 4096;

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxTextLength;
}

/** Reads a record; `undefined` for any other value. */
export function readRecord(value: unknown): RevocationRecord | undefined {
  if (!Array.isArray(value) || value.length !== 5) return undefined;
  const [scope, kind, name, mark, until]: readonly unknown[] = value;
  if (!isText(scope) || !isText(kind) || !isText(name)) return undefined;
  if (typeof mark !== 'number' || !Number.isSafeInteger(mark) || mark < 0 || !isTime(until)) return undefined;
  return [scope, kind, name, mark, until];
}

/** Bounds a time in seconds: a wrong clock or unit must not lock a user out, so that none is later than now. */
export function boundTime(before: number, now: number, clockTolerance: number): number {
  return before > now + clockTolerance ? now : before;
}

/** Checks a record of a store that others may write: `undefined` for any other value; its times can be right. */
export function checkRecord(
  value: unknown,
  { now, clockTolerance, maxTokenLifetime }: { now: number; clockTolerance: number; maxTokenLifetime: number },
): RevocationRecord | undefined {
  const record = readRecord(value);
  // A kind of another release.
  if (record === undefined || !isKind(record[1])) return record;
  const [scope, kind, name, mark, until] = record;
  const time = timeOfMark(mark) / 1000;
  const before = boundTime(time, now, clockTolerance);
  // A cutoff is retained no longer than the tokens that it refuses.
  const latest = kind === 'verified' ? Number.POSITIVE_INFINITY : now + maxTokenLifetime + 2 * clockTolerance;
  const end = Math.min(until, Math.ceil(latest));
  return [scope, kind, name, before === time ? mark : encodeMark(before, eventOfMark(mark)), end];
}

/** Thrown if a store has as many cutoffs as it can retain. No stored cutoff makes room. */
export class RevocationsFull extends Error {
  override readonly name = 'RevocationsFull';
  /** Has a fixed message. */
  constructor() {
    super(`There are ${maxRecords} cutoffs, and no other is stored. Lower the lifetime of access tokens.`);
  }
}

export const maxRecords = 1_000_000;
