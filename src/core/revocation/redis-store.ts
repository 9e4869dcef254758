import { randomBytes } from 'node:crypto';
import { keepLink, limit } from '../dpop/kept-link.ts';
import { openLinks, type RedisLink } from '../dpop/redis-link.ts';
import type { RedisClientLike } from '../dpop/redis-script.ts';
import { type RedisConnectionOptions, redisMembers } from '../dpop/redis-url.ts';
import { checkOptionMembers } from '../option-members.ts';
import { refuseOnWorkerd } from '../platform.ts';
import { type RevocationFollower, type RevocationRecord, type RevocationStore, RevocationsFull } from './record.ts';
import {
  aliveChannel,
  channel,
  discardForeign,
  parseMessage,
  scanRecords,
  type Writing,
  writeRecords,
} from './redis-script.ts';

/** A store in Redis, which all instances share. */
export interface RedisRevocationStore extends RevocationStore {
  /** True while Redis responds and changes arrive. */
  readonly connected: boolean;
}

/** Options of {@link createRedisRevocationStore}. */
export interface RedisRevocationOptions extends RedisConnectionOptions {
  /** Seconds until a write is given up. Default 3. */
  readonly timeout?: number;
  /** Called when the connection comes and goes, with the error that ended it. Errors it throws, or rejects with, are ignored. */
  readonly onConnection?: (state: 'up' | 'down', cause?: unknown) => unknown;
}

// Seconds.
const subscribeTimeout = 5;
const heartbeat = 1;
/** Signs of life in a row that may be missing. By time, a stall of this process would look like a silent Redis. */
const mostMissing = 1;
const recordsPerWrite = 500;

/**
 * Creates a store in Redis. `target` is a URL in any form that a replay store accepts, or a client of `@redis/client` that
 * you connect and close yourself. It connects when it is followed, and again after each loss; then it loads everything anew.
 * Records and their publication are one script, so no change is stored and not published. A Redis that was emptied, or took
 * over from another, gets back what each process knows. It must not evict (`maxmemory-policy noeviction`). Rejects as
 * `createRedisReplayStore` does.
 */
export async function createRedisRevocationStore(
  target: string | RedisClientLike,
  options: RedisRevocationOptions = {},
): Promise<RedisRevocationStore> {
  checkOptionMembers<RedisRevocationOptions>('createRedisRevocationStore', options, redisMembers);
  const { timeout = 3, onConnection } = options;
  refuseOnWorkerd('createRedisRevocationStore', 'where no connection outlives a request');
  const links = await openLinks(target, options);
  const instance = randomBytes(9).toString('base64url');
  let follower: RevocationFollower | undefined;
  /** Identity of the Redis that was loaded last: another one may lack records. */
  let identity: string | undefined;
  /** Signs of life that were requested since the last one. */
  let missing = 0;
  const kept = keepLink(links, {
    async prepare(opened) {
      const channels = [channel, aliveChannel(instance)];
      const subscribed = opened.subscribe(channels, (message, from) => receive(opened, message, from));
      await limit(subscribed, subscribeTimeout);
      missing = 0;
      await load(opened);
    },
    onReady(opened) {
      follower?.onContact();
      beat(opened);
    },
    onConnection,
  });

  const receive = (from: RedisLink, message: string, source: string): void => {
    if (!kept.isCurrent(from)) return;
    if (source === channel) {
      const read = parseMessage(message);
      const records = read.filter((each) => each !== undefined);
      follower?.noteInvalid(read.length - records.length);
      // Redis may have stored them too.
      void apply(from, records).catch(() => undefined);
      return;
    }
    missing = 0;
    if (kept.ready() === from) follower?.onContact();
  };

  /** Loads everything. Called after subscribing, so that no change is missed in between. */
  const load = async (opened: RedisLink): Promise<void> => {
    const before = identity;
    const now = await send(opened, []);
    // What is known only here was lost there.
    if (before !== undefined && before !== now) await sendAll(opened, [...(follower?.records() ?? [])]);
    for await (const { records, foreign } of scanRecords(opened.commands)) {
      await apply(opened, records);
      if (foreign.length === 0) continue;
      follower?.noteInvalid(foreign.length / 2);
      // The sizes change, and so each instance writes back what it knows.
      await limit(discardForeign(opened.commands, foreign), timeout);
    }
    identity = now;
  };

  /** Applies records, and stores those that were corrected. */
  const apply = async (opened: RedisLink, records: readonly RevocationRecord[]): Promise<void> =>
    sendAll(opened, follower?.apply(records) ?? []);

  /** If Redis is full, it has others, and these still apply here. */
  const sendAll = async (to: RedisLink, records: readonly RevocationRecord[]): Promise<void> => {
    for (const batch of batchesOf(records)) {
      await send(to, batch).catch((error: unknown) => {
        if (!(error instanceof RevocationsFull)) throw error;
      });
    }
  };

  const send = async (to: RedisLink, records: readonly RevocationRecord[], writing: Writing = {}): Promise<string> => {
    const { identity: found, foreign } = await limit(writeRecords(to.commands, records, writing), timeout);
    follower?.noteInvalid(foreign);
    return found;
  };

  /** A message to only this instance: it arrives only if the subscription and Redis work. */
  const beat = (on: RedisLink): void => {
    setTimeout(() => {
      if (!kept.isCurrent(on)) return;
      if (missing++ > mostMissing) return kept.drop(on, new Error('Redis does not respond'));
      send(on, [], { alive: aliveChannel(instance) })
        .then(async (now) => {
          if (now !== identity && kept.isCurrent(on)) await load(on);
        })
        .then(
          () => kept.isCurrent(on) && beat(on),
          (cause: unknown) => kept.drop(on, cause),
        );
    }, heartbeat * 1000).unref();
  };

  /** Writes of one batch go together: while one is in flight, the next is gathered. */
  let gathered: { readonly records: RevocationRecord[]; readonly done: Promise<void> } | undefined;
  let writing: Promise<unknown> = Promise.resolve();
  const writeBatch = (records: readonly RevocationRecord[]): Promise<void> => {
    if (gathered === undefined || gathered.records.length + records.length > recordsPerWrite) {
      const batch: RevocationRecord[] = [];
      const done = writing.then(async () => {
        if (gathered?.records === batch) gathered = undefined;
        await send(requireLink(), batch, { publish: 'all' });
      });
      writing = done.catch(() => undefined);
      gathered = { records: batch, done };
    }
    gathered.records.push(...records);
    return gathered.done;
  };

  const requireLink = (): RedisLink => {
    const link = kept.ready();
    if (link === undefined) throw new Error('There is no connection to Redis');
    return link;
  };

  return {
    async write(records) {
      requireLink();
      for (const batch of batchesOf(records)) await writeBatch(batch);
      follower?.apply(records);
    },
    follow(next) {
      if (follower !== undefined) throw new TypeError('store: a store in Redis is for one createRevocations()');
      follower = next;
      kept.connect();
    },
    unfollow: kept.close,
    get connected() {
      return kept.ready() !== undefined;
    },
  };
}

function* batchesOf(records: readonly RevocationRecord[]): Generator<readonly RevocationRecord[]> {
  for (let at = 0; at < records.length; at += recordsPerWrite) yield records.slice(at, at + recordsPerWrite);
}
