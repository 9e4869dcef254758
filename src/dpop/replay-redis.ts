import { hash } from 'node:crypto';
import { AccessError } from '../failures.ts';
import { refuseOnWorkerd } from '../platform.ts';
import { proofLifetime } from './proof-checks.ts';
import { clockMargin, readSince } from './redis-restart.ts';
import { type ReplayStore, replayName } from './replay.ts';

/** A replay store in Redis, which all instances share. */
export interface RedisReplayStore extends ReplayStore {
  /** `replay_store_unavailable` if Redis did not answer in time, or may have forgotten the proof. Never rejects. */
  witness(jkt: string, jti: string, until: number): Promise<boolean | AccessError>;
  /** Whether Redis can be asked now. */
  readonly connected: boolean;
  /** How many proofs could not be judged. */
  readonly errors: number;
  /** Gives the connection up; what waits for an answer is rejected. */
  close(): void;
}

/** Options of {@link createRedisReplayStore}. */
export interface RedisReplayOptions {
  /** Seconds that one answer is waited for. Default 0.25. */
  readonly timeout?: number;
  /** Told when the connection comes and goes, as `connected` has it, with the error that ended it or kept it from coming. */
  readonly onConnection?: (state: 'up' | 'down', cause?: unknown) => void;
  /** Seconds since the epoch: the clock that proofs are judged by. Default: the clock of this machine. */
  readonly now?: () => number;
}

type Client = ReturnType<typeof createClient>;

/** What became of one connection: it can be asked about proofs made since then, or it has ended for this cause. */
type ConnectionChange =
  | { readonly state: 'up'; readonly since: number }
  | { readonly state: 'down'; readonly cause: unknown };

const maxUnanswered = 10_000;
/** Seconds that a new connection has to tell since when Redis remembers. */
const checkTimeout = 1;
// Milliseconds. Together they find a lost connection and have a new one within 5 s.
const connectTimeout = 1_500;
const minReconnectDelay = 50;
const maxReconnectDelay = 1_000;
const pingInterval = 1_000;
const idleTimeout = 2_500;

/**
 * Creates a replay store in Redis: one `SET NX PX` a proof. It connects in the background, and again whenever the
 * connection is lost; until then it refuses at once, for nothing is queued. Rejects with `TypeError` for a URL that is
 * none of Redis and on Cloudflare Workers, and with `Error` where the package `@redis/client` is not installed.
 *
 * A Redis that was started anew may have forgotten proofs: those made (`until` less 300 seconds) before its return are
 * refused. What remains: a client whose clock is ahead by more than the outage and a second may have a used proof accepted
 * once more after it. Redis must not evict (`maxmemory-policy noeviction`), and must allow INFO, GET, SET and PING.
 */
export async function createRedisReplayStore(url: string, options: RedisReplayOptions = {}): Promise<RedisReplayStore> {
  const { timeout = 0.25, onConnection, now = () => Date.now() / 1000 } = options;
  refuseOnWorkerd(
    'createRedisReplayStore',
    'where no connection outlives a request; write a store on a Durable Object',
  );
  const redis = await loadRedis();
  let client: Client | undefined;
  let ready: { readonly client: Client; readonly since: number } | undefined;
  let connected: 'before' | 'never' = 'never';
  let reported: ConnectionChange['state'] | undefined;
  /** Connections in a row that came to nothing. */
  let failedAttempts = 0;
  let timer: NodeJS.Timeout | undefined;
  let errors = 0;
  /** Answers of Redis so far, to anything. */
  let answers = 0;
  connect();

  function connect(): void {
    const opened = createClient(redis, url);
    client = opened;
    opened.on('error', (cause: unknown) => noteChange(opened, { state: 'down', cause }));
    opened.on('ping-interval', () => answers++);
    check(opened).then(
      (since) => noteChange(opened, { state: 'up', since }),
      (cause: unknown) => noteChange(opened, { state: 'down', cause }),
    );
  }

  async function check(opened: Client): Promise<number> {
    await opened.connect();
    return limit(readSince(opened, { now, connected }), checkTimeout);
  }

  function noteChange(from: Client, change: ConnectionChange): void {
    // Again for one that was given up before: it may have been on its way then.
    if (change.state === 'down') from.destroy();
    if (from !== client) return;
    if (change.state === 'up') {
      ready = { client: from, since: change.since };
      connected = 'before';
      failedAttempts = 0;
    } else {
      client = ready = undefined;
      const delay = Math.min(minReconnectDelay * 2 ** failedAttempts++, maxReconnectDelay);
      // Several instances should not come back in step.
      timer = setTimeout(connect, delay * (0.5 + Math.random() / 2)).unref();
    }
    // Each failed attempt is an error: only the first is reported.
    if (change.state === reported) return;
    reported = change.state;
    onConnection?.(change.state, change.state === 'down' ? change.cause : undefined);
  }

  function refuse(cause: unknown): AccessError {
    errors++;
    return new AccessError('replay_store_unavailable', { cause });
  }

  return {
    async witness(jkt, jti, until) {
      if (ready === undefined) return refuse(new Error('There is no connection to Redis'));
      const { client: asked, since } = ready;
      if (until - proofLifetime < since) return refuse(new Error('Redis may have forgotten proofs of that time'));
      const key = `portcullis:jti:${hash('sha256', replayName(jkt, jti), 'base64url')}`;
      const lifetime = Math.ceil((until - now() + clockMargin) * 1000);
      const answersBefore = answers;
      try {
        const answer = await limit(
          asked.set(key, '1', { condition: 'NX', expiration: { type: 'PX', value: lifetime } }),
          timeout,
        );
        answers++;
        return answer === 'OK';
      } catch (cause) {
        // Nothing at all came back in that time: what was written may be lost, and TCP would take minutes to tell.
        if (cause instanceof LateError && answers === answersBefore) noteChange(asked, { state: 'down', cause });
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
      const closed = client;
      client = ready = undefined;
      clearTimeout(timer);
      closed?.destroy();
    },
  };
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

function createClient(redis: typeof import('@redis/client'), url: string) {
  try {
    return redis.createClient({
      url,
      RESP: 2,
      // What is sent while there is no connection is rejected, and what is sent over it is bounded.
      disableOfflineQueue: true,
      commandsQueueMaxLength: maxUnanswered,
      // Our own timer tells each caller; this one would only take a command back that is not yet written.
      commandOptions: { timeout: 0 },
      disableClientInfo: true,
      maintNotifications: 'disabled',
      // A ping that is not answered keeps the connection idle, and idle for so long it is dropped.
      pingInterval,
      socket: {
        connectTimeout,
        socketTimeout: idleTimeout,
        // Each connection is a client of its own, so that none is used before it was checked.
        reconnectStrategy: false,
      },
    });
  } catch {
    // No cause: the error of a URL holds its text, and that may hold a password.
    throw new TypeError('url: write redis://[user:password@]host[:port][/database], or rediss:// for TLS');
  }
}
