/** 96 bits of a keyed hash, as three unsigned words of 32 bits. */
export type Fingerprint = readonly [number, number, number];

/** A set of fingerprints, each of which is forgotten when its time has come and never before. */
export interface ExpiringSet {
  /**
   * Adds a fingerprint to keep until the end of the second `until`. `present` also for an expired one whose slot is not yet
   * reclaimed; `late` if that second is over by the time passed to `expire`, so that it may be forgotten.
   */
  add(fingerprint: Fingerprint, until: number): 'added' | 'present' | 'full' | 'late';
  /** Tells the time, in whole seconds: everything to be kept until an earlier second is dead. */
  expire(now: number): void;
  readonly size: number;
}

// Words of one entry: the fingerprint, the next entry of its bucket, the next entry of its second.
const bucketLink = 3;
const secondLink = 4;
const entryWords = 5;

/** Dead entries that one `add` gives back: more than it takes, so that they cannot pile up. */
const reclaimedPerAdd = 4;

/** Entries that share their last second, linked through `secondLink`. */
interface Cohort {
  readonly first: number;
  readonly size: number;
}

/**
 * Creates an empty set for up to `capacity` entries, expired but unreclaimed ones included. Linear hashing with chains: each
 * new entry splits one bucket and nothing is moved or swept in bulk, so that every `add` takes constant time; 24 bytes an
 * entry, and memory grows with the largest number of entries.
 */
export function createExpiringSet(capacity: number): ExpiringSet {
  // Entry 0 does not exist: a link of 0 ends a list.
  const entries = createWords();
  const heads = createWords();
  const cohorts = new Map<number, Cohort>();
  /** First entries of the dead cohorts. */
  const dead: number[] = [];
  let spare = 0;
  let used = 0;
  let alive = 0;
  let horizon = Number.NEGATIVE_INFINITY;
  let buckets = 1;
  /** The largest 2^n - 1 below `buckets`. */
  let mask = 0;

  const findBucket = (word: number): number => {
    const wide = word & (2 * mask + 1);
    return wide < buckets ? wide : word & mask;
  };
  const has = ([a, b, c]: Fingerprint, bucket: number): boolean => {
    for (let entry = heads.get(bucket); entry !== 0; entry = entries.get(entry * entryWords + bucketLink)) {
      const at = entry * entryWords;
      if (entries.get(at) === a && entries.get(at + 1) === b && entries.get(at + 2) === c) return true;
    }
    return false;
  };
  const prepend = (entry: number, bucket: number): void => {
    entries.set(entry * entryWords + bucketLink, heads.get(bucket));
    heads.set(bucket, entry);
  };
  const split = (): void => {
    const from = buckets - mask - 1;
    let entry = heads.get(from);
    heads.set(from, 0);
    buckets++;
    while (entry !== 0) {
      const next = entries.get(entry * entryWords + bucketLink);
      prepend(entry, findBucket(entries.get(entry * entryWords)));
      entry = next;
    }
    if (buckets === 2 * (mask + 1)) mask = buckets - 1;
  };
  const unlink = (entry: number): void => {
    const bucket = findBucket(entries.get(entry * entryWords));
    const next = entries.get(entry * entryWords + bucketLink);
    if (heads.get(bucket) === entry) {
      heads.set(bucket, next);
      return;
    }
    let link = heads.get(bucket) * entryWords + bucketLink;
    while (entries.get(link) !== entry) link = entries.get(link) * entryWords + bucketLink;
    entries.set(link, next);
  };
  const reclaim = (): void => {
    for (let count = 0; count < reclaimedPerAdd; count++) {
      const entry = dead.pop();
      if (entry === undefined) return;
      unlink(entry);
      const at = entry * entryWords + secondLink;
      const next = entries.get(at);
      if (next !== 0) dead.push(next);
      entries.set(at, spare);
      spare = entry;
    }
  };
  /** 0 if there is no room. */
  const allocate = (): number => {
    const entry = spare;
    if (entry !== 0) {
      spare = entries.get(entry * entryWords + secondLink);
      return entry;
    }
    if (used === capacity) return 0;
    used++;
    entries.reserve((used + 1) * entryWords);
    heads.reserve(buckets + 1);
    return used;
  };

  return {
    add(fingerprint, until) {
      if (until < horizon) return 'late';
      reclaim();
      if (has(fingerprint, findBucket(fingerprint[0]))) return 'present';
      const entry = allocate();
      if (entry === 0) return 'full';
      if (used > buckets) split();
      const at = entry * entryWords;
      const cohort = cohorts.get(until);
      entries.set(at, fingerprint[0]);
      entries.set(at + 1, fingerprint[1]);
      entries.set(at + 2, fingerprint[2]);
      entries.set(at + secondLink, cohort?.first ?? 0);
      prepend(entry, findBucket(fingerprint[0]));
      cohorts.set(until, { first: entry, size: (cohort?.size ?? 0) + 1 });
      alive++;
      return 'added';
    },
    expire(now) {
      // Never back: what is forgotten must not seem new when a clock is set back.
      if (now <= horizon) return;
      horizon = now;
      for (const [until, { first, size }] of cohorts) {
        if (until >= now) continue;
        cohorts.delete(until);
        dead.push(first);
        alive -= size;
      }
    },
    get size() {
      return alive;
    },
  };
}

const pageBits = 14;
const pageWords = 2 ** pageBits;

/** Words of 32 bits, zero at first. */
interface Words {
  get(index: number): number;
  set(index: number, value: number): void;
  /** Makes room for `count` words; existing ones do not move. */
  reserve(count: number): void;
}

function createWords(): Words {
  const pages: Uint32Array[] = [new Uint32Array(pageWords)];
  // The casts: every index was reserved before it is used.
  const pageOf = (index: number): Uint32Array => pages[index >>> pageBits] as Uint32Array;
  return {
    get: (index) => pageOf(index)[index & (pageWords - 1)] as number,
    set(index, value) {
      pageOf(index)[index & (pageWords - 1)] = value;
    },
    reserve(count) {
      while (pages.length * pageWords < count) pages.push(new Uint32Array(pageWords));
    },
  };
}
