import { hash, randomBytes, randomInt } from 'node:crypto';
import { attempt } from '../attempt.ts';
import { AccessError } from '../failures.ts';
import { checkOptionMembers } from '../option-members.ts';
import { refuseOnWorkerd } from '../platform.ts';
import { isAfter, type ReadNonce } from './horizon.ts';
import { linkTo, type RedisLink, useClient } from './redis-link.ts';
import { clockMargin, type RedisAnswer, type RedisClientLike, runScript } from './redis-script.ts';
import { type ReplayStore, replayName, type Witnessed } from './replay.ts';

/** A replay store in Redis, which all instances share. */
export interface RedisReplayStore extends ReplayStore {
  /**
   * As {@link ReplayStore.witness}. `replay_store_unavailable` if Redis did not answer in time; `proof_before_start` if
   * it may have lost the proof; `proof_too_old` if the proof has ended by the clock of Redis. Never rejects.
   */
  witness(jkt: string, jti: string, until: number, readNonce?: ReadNonce): Promise<Witnessed>;
  readonly sharedBy: 'instances';
  /** Whether Redis can be asked now. */
  readonly connected: boolean;
  /** How many proofs could not be judged. */
  readonly errors: number;
  /** Gives the connection up; what waits for an answer is refused. A client that was handed over stays connected. */
  close(): void;
}

/** Options of {@link createRedisReplayStore}. */
export interface RedisReplayOptions {
  /** Seconds that one answer is waited for. Default 0.25. */
  readonly timeout?: number;
  /** Stores of other names in the same Redis do not know each other's proofs. Default `serve`. */
  readonly namespace?: string;
  /**
   * Called when the connection comes and goes, as `connected` has it, with the error that ended it or kept it from coming.
   * Errors it throws, or rejects with, are ignored.
   */
  readonly onConnection?: (state: 'up' | 'down', cause?: unknown) => unknown;
  /** Seconds since the epoch: the clock that proofs are judged by. Default: the clock of this machine. */
  readonly now?: () => number;
}

/** What became of one link: it can be asked, or it has ended for this cause. */
type LinkChange =
  | { readonly state: 'up'; readonly answer: RedisAnswer }
  | { readonly state: 'down'; readonly cause: unknown };

// Seconds. A link has this long to be there and to tell since when Redis remembers.
const linkTimeout = 5;
const checkTimeout = 1;
// Milliseconds.
const minReconnectDelay = 50;
const maxReconnectDelay = 1_000;
const namespaceGrammar = /^[\w.-]{1,64}$/;
/** Errors of a Redis that is no longer, or not yet, the one to ask. */
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
    timeout: true,
    namespace: true,
    onConnection: true,
    now: true,
  });
  const { timeout = 0.25, namespace = 'serve', onConnection, now = () => Date.now() / 1000 } = options;
  refuseOnWorkerd(
    'createRedisReplayStore',
    'where no connection outlives a request; write a store on a Durable Object',
  );
  if (!namespaceGrammar.test(namespace)) throw new TypeError('namespace: write 1 to 64 letters, digits, _, . or -');
  const links = typeof target === 'string' ? linkTo(await loadRedis(), target) : useClient(target);
  const names = nameKeys(namespace, links.isCluster);
  const instance = randomBytes(9).toString('base64url');
  let link: RedisLink | undefined;
  let ready: RedisLink | undefined;
  let horizon: Pick<RedisAnswer, 'since' | 'generation'> | undefined;
  let reported: LinkChange['state'] | undefined;
  /** Links in a row that came to nothing. */
  let failedAttempts = 0;
  let timer: NodeJS.Timeout | undefined;
  let errors = 0;
  /** Answers of Redis so far, to anything. */
  let answers = 0;
  let attempts = 0;
  connect();

  function connect(): void {
    const opened = links.open({
      onError: (cause) => noteChange(opened, { state: 'down', cause }),
      onAnswer: () => answers++,
    });
    link = opened;
    check(opened).then(
      (answer) => noteChange(opened, { state: 'up', answer }),
      (cause: unknown) => noteChange(opened, { state: 'down', cause }),
    );
  }

  async function check(opened: RedisLink): Promise<RedisAnswer> {
    await limit(opened.connect(), linkTimeout);
    return limit(ask(opened, names.run, ''), checkTimeout);
  }

  function ask({ commands }: RedisLink, record: string, until: string): Promise<RedisAnswer> {
    return runScript(commands, {
      keys: [record, names.run, names.generation],
      arguments: [
        until,
        String(Math.floor(now() * 1000)),
        String(randomInt(2 ** 32)),
        `${instance}${attempts++}`,
        String(clockMargin * 1000),
      ],
    });
  }

  function noteChange(from: RedisLink, change: LinkChange): void {
    // Again for one that was given up before: it may have been on its way then.
    if (change.state === 'down') from.destroy();
    if (from !== link) return;
    if (change.state === 'up') {
      ready = from;
      horizon = change.answer;
      failedAttempts = 0;
    } else {
      link = ready = undefined;
      const delay = Math.min(minReconnectDelay * 2 ** failedAttempts++, maxReconnectDelay);
      // Several instances should not come back in step.
      timer = setTimeout(connect, delay * (0.5 + Math.random() / 2)).unref();
    }
    // Each failed attempt is an error: only the first is reported.
    if (change.state === reported) return;
    reported = change.state;
    attempt(onConnection, change.state, change.state === 'down' ? change.cause : undefined);
  }

  function refuse(cause: unknown): AccessError {
    errors++;
    return new AccessError('replay_store_unavailable', { cause });
  }

  return {
    sharedBy: 'instances',
    get generation() {
      return horizon?.generation ?? 0;
    },
    async witness(jkt, jti, until, readNonce) {
      if (ready === undefined) return refuse(new Error('There is no connection to Redis'));
      const asked = ready;
      const record = `${names.records}${hash('sha256', replayName(jkt, jti), 'base64url')}`;
      const answersBefore = answers;
      try {
        const answer = await limit(ask(asked, record, String(Math.ceil(until * 1000))), timeout);
        answers++;
        horizon = answer;
        if (answer.outcome === 'late') return new AccessError('proof_too_old');
        if (answer.outcome === 'seen') return false;
        return isAfter(answer, { until, readNonce }) ? true : new AccessError('proof_before_start');
      } catch (cause) {
        if (isOver(cause, answers === answersBefore)) noteChange(asked, { state: 'down', cause });
        return refuse(cause);
      }
    },
    get connected() {
      return ready !== undefined;
    },
    get errors() {
      return errors;
    },
    close() {
      const closed = link;
      link = ready = undefined;
      clearTimeout(timer);
      closed?.destroy();
    },
  };
}

/** Whether an answer that did not come, or is an error, says that the link is of no more use. */
function isOver(cause: unknown, isSilent: boolean): boolean {
  // Nothing at all came back in that time: what was written may be lost, and TCP would take minutes to tell.
  if (cause instanceof LateError) return isSilent;
  // An error that Redis answers is no fault of the link, unless Redis is no longer the one to ask.
  const isAnswer = cause instanceof Error && /^[A-Z]+ /.test(cause.message);
  return !isAnswer || movedErrors.test(cause.message);
}

/**
 * The names of all keys. Those of `serve` are as they were before there were namespaces: instances of both releases
 * share them during an upgrade. A cluster keeps keys with the same text in braces in one slot, and so on one master.
 */
function nameKeys(namespace: string, isCluster: boolean) {
  const plain = namespace === 'serve' ? 'portcullis' : `portcullis:${namespace}`;
  const prefix = isCluster ? `{portcullis:${namespace}}` : plain;
  return { records: `${prefix}:jti:`, run: `${prefix}:run`, generation: `${prefix}:generation` };
}

class LateError extends Error {
  override readonly name = 'LateError';
}

/** The answer, or `LateError` after so many seconds. */
async function limit<T>(answer: Promise<T>, seconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const refuse = (): void => reject(new LateError('Redis did not answer in time'));
    // An answer that came while this process was busy is read first, and counts.
    timer = setTimeout(() => setImmediate(refuse), seconds * 1000);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function loadRedis(): Promise<typeof import('@redis/client')> {
  try {
    return await import('@redis/client');
  } catch (cause) {
    throw new Error('A replay store in Redis needs its client. Install it with "npm install @redis/client"', { cause });
  }
}
