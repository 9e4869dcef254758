import { hash } from 'node:crypto';
import { AccessError } from '../failures.ts';
import { type ReplayStore, replayName } from './replay.ts';

/** A replay store in Redis, which all instances share. */
export interface RedisReplayStore extends ReplayStore {
  /** Rejects with `replay_store_unavailable` where Redis has not answered in time. */
  witness(jkt: string, jti: string, until: number): Promise<boolean>;
  /** Whether Redis can be asked now. */
  readonly connected: boolean;
  /** How many times Redis could not be asked, or did not answer. */
  readonly errors: number;
  /** Gives the connection up; what waits for an answer is rejected. */
  close(): void;
}

/** Options of {@link createRedisReplayStore}. */
export interface RedisReplayOptions {
  /** Seconds that one answer is waited for. Default 0.25. */
  readonly timeout?: number;
  /** Told when the connection comes and goes, with the error that ended it or kept it from coming. */
  readonly onConnection?: (state: 'up' | 'down', cause?: unknown) => void;
  /** Seconds since the epoch: the clock that proofs are judged by. Default: the clock of this machine. */
  readonly now?: () => number;
}

type Client = ReturnType<typeof createClient>;

/** Seconds that a proof is kept longer, since the clocks of instances differ. */
const clockMargin = 30;
const maxUnanswered = 10_000;
// Milliseconds. Together they find a lost connection and have a new one within 5 s.
const connectTimeout = 1_500;
const minReconnectDelay = 50;
const maxReconnectDelay = 1_000;
const pingInterval = 1_000;
const idleTimeout = 2_500;

/**
 * Creates a replay store in Redis: one `SET NX PX` a proof. It connects in the background, and again whenever the
 * connection is lost; until then it refuses at once, for nothing is queued. Rejects with `TypeError` for a URL that is
 * none of Redis, and with `Error` where the package `@redis/client` is not installed.
 */
export async function createRedisReplayStore(url: string, options: RedisReplayOptions = {}): Promise<RedisReplayStore> {
  const { timeout = 0.25, onConnection, now = () => Date.now() / 1000 } = options;
  const redis = await loadRedis();
  let connection: 'up' | 'down' | undefined;
  let errors = 0;
  /** Answers of Redis so far, to anything. */
  let answers = 0;
  let client = connect();

  function connect(): Client {
    const opened = createClient(redis, url);
    const report = (state: 'up' | 'down', cause?: unknown): void => {
      // Each failed attempt is an error: the first is news. What a client that was given up says is none.
      if (opened !== client || state === connection) return;
      connection = state;
      onConnection?.(state, cause);
    };
    opened.on('ready', () => report('up'));
    opened.on('error', (cause: unknown) => report('down', cause));
    opened.on('ping-interval', () => answers++);
    // Settles when the first attempt succeeds or the client is given up; failed attempts are events.
    opened.connect().catch(() => {});
    return opened;
  }

  return {
    async witness(jkt, jti, until) {
      const key = `portcullis:jti:${hash('sha256', replayName(jkt, jti), 'base64url')}`;
      const lifetime = Math.ceil((until - now() + clockMargin) * 1000);
      const asked = client;
      const answersBefore = answers;
      try {
        const answer = await limit(
          asked.set(key, '1', { condition: 'NX', expiration: { type: 'PX', value: lifetime } }),
          timeout,
        );
        answers++;
        return answer === 'OK';
      } catch (cause) {
        errors++;
        // Nothing came back at all in that time: what was written may be lost, and TCP would take minutes to tell.
        // Whatever else waits for this connection is rejected at once, so that it is given up but once.
        if (cause instanceof LateError && answers === answersBefore) {
          client = connect();
          asked.destroy();
        }
        throw new AccessError('replay_store_unavailable', { cause });
      }
    },
    get connected() {
      return client.isReady;
    },
    get errors() {
      return errors;
    },
    close() {
      client.destroy();
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
    throw new Error('REPLAY_STORE names Redis: install its client with "npm install @redis/client"', { cause });
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
        // Several instances should not come back in step.
        reconnectStrategy: (retries) =>
          Math.min(minReconnectDelay * 2 ** retries, maxReconnectDelay) * (0.5 + Math.random() / 2),
      },
    });
  } catch {
    // No cause: the error of a URL holds its text, and that may hold a password.
    throw new TypeError('url: write redis://[user:password@]host[:port][/database], or rediss:// for TLS');
  }
}
