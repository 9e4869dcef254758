import { hash, randomBytes, randomInt } from 'node:crypto';
import { callable, checkOptionMembers, isText } from '../option-members.ts';
import { refuseOnWorkerd } from '../platform.ts';
import { Refused } from '../refused.ts';
import { keepLink, LateError, limit } from './kept-link.ts';
import { openLinks, type RedisLink } from './redis-link.ts';
import { type RedisClientLike, runScript } from './redis-script.ts';
import { type RedisConnectionOptions, redisMembers } from './redis-url.ts';
import { type Horizon, isAfter, type ReadNonce, type ReplayStore, replayName, type Witnessed } from './replay.ts';

/** A replay store in Redis, which all instances share. */
export interface RedisReplayStore extends ReplayStore {
  /**
   * Like {@link ReplayStore.witness}. `replay_store_unavailable` if Redis did not respond in time; `proof_before_start` if it
   * may have lost the proof; `proof_too_old` if the proof has expired by the clock of Redis. Never rejects.
   */
  witness(jkt: string, jti: string, until: number, readNonce?: ReadNonce): Promise<Witnessed>;
  /** Proofs are recorded for all instances. */
  readonly sharedBy: 'instances';
  /** True if Redis is reachable now. */
  readonly connected: boolean;
  /** Number of proofs that could not be checked. */
  readonly errors: number;
  /** Closes the connection; pending checks are refused. A client that the caller passed stays connected. */
  close(): void;
}

/** Options of {@link createRedisReplayStore}. */
export interface RedisReplayOptions extends RedisConnectionOptions {
  /** Time limit per command, in seconds. Default: 0.25. */
  readonly timeout?: number;
  /** Stores of other names in the same Redis do not know each other's proofs. Default `serve`. */
  readonly namespace?: string;
  /**
   * Called when the connection comes and goes, as `connected` has it, with the error that ended it or kept it from coming.
   * Errors it throws, or rejects with, are ignored.
   */
  readonly onConnection?: (state: 'up' | 'down', cause?: unknown) => unknown;
  /** Clock for proofs, in seconds since the epoch. Default: the clock of this host. */
  readonly now?: () => number;
}

/** Seconds that Redis has to tell since when it remembers. */
const checkTimeout = 1;
const namespaceGrammar = /^[\w.-]{1,64}$/;
/** Errors of a Redis that is no longer, or not yet, the right one. */
const movedErrors = /^(?:READONLY|MOVED|ASK|CLUSTERDOWN|LOADING|MASTERDOWN|TRYAGAIN|NOREPLICAS)\b/;

/**
 * Creates a replay store in Redis: one round trip a proof. `target` is a URL (`redis://`, `redis+sentinel://` or
 * `redis+cluster://`, each with `rediss` for TLS), or a client of `@redis/client` that you connect and close yourself.
 * It connects in the background, and again whenever the connection is lost; until then it refuses at once. Rejects with
 * `TypeError` for a URL that is none of Redis and on Cloudflare Workers, and with `Error` where the package
 * `@redis/client` is not installed.
 *
 * A Redis that was emptied, was started anew, or took over from another may have lost proofs: those made before that was
 * noticed need a younger nonce. What remains: a proof dated ahead by more than the loss took; and what a master accepts
 * after its replicas have given it up (set `min-replicas-to-write 1`). Redis 6.2 or later, which must not evict
 * (`maxmemory-policy noeviction`), whose clock is right to within 30 s, and which allows EVAL, EVALSHA, INFO, TIME, GET,
 * SET and PING.
 */
export async function createRedisReplayStore(
  target: string | RedisClientLike,
  options: RedisReplayOptions = {},
): Promise<RedisReplayStore> {
  checkOptionMembers<RedisReplayOptions>('createRedisReplayStore', options, {
    ...{ ...redisMembers, namespace: true, now: callable },
  });
  const { timeout = 0.25, namespace = 'serve', onConnection, now = () => Date.now() / 1000 } = options;
  refuseOnWorkerd(
    'createRedisReplayStore',
    'where no connection outlives a request; write a store on a Durable Object',
  );
  if (!isText(namespace) || !namespaceGrammar.test(namespace))
    throw new TypeError('namespace: write 1 to 64 letters, digits, _, . or -');
  const links = await openLinks(target, options);
  const names = nameKeys(namespace, links.isCluster);
  const instance = randomBytes(9).toString('base64url');
  let horizon: Horizon | undefined;
  let errors = 0;
  let answers = 0;
  let attempts = 0;
  const kept = keepLink(links, {
    async prepare(opened) {
      horizon = await limit(ask(opened, names.run, ''), checkTimeout);
    },
    onAnswer: () => answers++,
    onConnection,
  });
  kept.connect();

  const ask = ({ commands }: RedisLink, record: string, until: string) => {
    const values = [until, Math.floor(now() * 1000), randomInt(2 ** 32), `${instance}${attempts++}`];
    return runScript(commands, { keys: [record, names.run, names.generation], arguments: values.map(String) });
  };

  function refuse(cause: unknown): Refused {
    errors++;
    return new Refused('replay_store_unavailable', { cause });
  }

  return {
    sharedBy: 'instances',
    get generation() {
      return horizon?.generation ?? 0;
    },
    async witness(jkt, jti, until, readNonce) {
      const asked = kept.ready();
      if (asked === undefined) return refuse(new Error('There is no connection to Redis'));
      const record = `${names.records}${hash('sha256', replayName(jkt, jti), 'base64url')}`;
      const answersBefore = answers;
      try {
        const answer = await limit(ask(asked, record, String(Math.ceil(until * 1000))), timeout);
        answers++;
        horizon = answer;
        if (answer.outcome === 'late') return new Refused('proof_too_old');
        if (answer.outcome === 'seen') return false;
        return isAfter(answer, { until, readNonce }) ? true : new Refused('proof_before_start');
      } catch (cause) {
        if (isOver(cause, answers === answersBefore)) kept.drop(asked, cause);
        return refuse(cause);
      }
    },
    get connected() {
      return kept.ready() !== undefined;
    },
    get errors() {
      return errors;
    },
    close: kept.close,
  };
}

/** Reports whether a missing response or an error shows that the link is unusable. */
function isOver(cause: unknown, isSilent: boolean): boolean {
  // Nothing at all came back in that time: what was written may be lost, and TCP would take minutes to tell.
  if (cause instanceof LateError) return isSilent;
  // An error response of Redis is not a fault of the link, unless the server is no longer the right one.
  const isAnswer = cause instanceof Error && /^[A-Z]+ /.test(cause.message);
  return !isAnswer || movedErrors.test(cause.message);
}

/**
 * Returns the names of all keys. The names of `serve` are older than namespaces: instances of both releases share them during
 * an upgrade. A cluster keeps keys with the same string in braces in one slot, and so on one master.
 */
function nameKeys(namespace: string, isCluster: boolean) {
  const plain = namespace === 'serve' ? 'portcullis' : `portcullis:${namespace}`;
  const prefix = isCluster ? `{portcullis:${namespace}}` : plain;
  return { records: `${prefix}:jti:`, run: `${prefix}:run`, generation: `${prefix}:generation` };
}
