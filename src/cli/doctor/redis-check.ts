import { createRedisReplayStore, type RedisReplayOptions } from '../../core/dpop/replay-redis.ts';
import { AccessError } from '../../core/failures.ts';
import { showUrl } from '../../core/http/shown-url.ts';
import { readRedisOptions } from '../../server/process/open-replay.ts';
import type { DoctorCheck, DoctorContext, Outcomes } from './examination.ts';
import { type Code, type Outcome, ok, problem, skipped } from './finding.ts';
import { describeError, describeTimeout } from './requests.ts';

interface RedisError {
  /** Beginning of the message of Redis or of its client. */
  readonly form: RegExp;
  readonly code: Code;
  readonly fix: (setting: string) => string;
}

/** First match. */
const redisErrors: readonly RedisError[] = [
  {
    form: /^(?:WRONGPASS|NOAUTH|ERR AUTH|ERR invalid password|ERR Client sent AUTH|ERR Protocol error: unauthenticated)/,
    code: 'D151',
    fix: (name) => `Correct user and password in ${name}. Percent-encode other characters than letters and digits.`,
  },
  {
    form: /^(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN)\b/,
    code: 'D152',
    fix: (name) => `Set ${name} to redis+cluster://host:port,…, or to a server without cluster mode.`,
  },
  {
    form: /^(?:READONLY|MISCONF|NOREPLICAS)\b/,
    code: 'D155',
    fix: (name) => `Set ${name} to the master, or to its sentinels. If it is the master, free its disk.`,
  },
  { form: /^OOM\b/, code: 'D156', fix: () => 'CONFIG SET maxmemory with a larger limit, or remove other data.' },
  {
    form: /^(?:NOPERM|ERR unknown command)/,
    code: 'D157',
    fix: () => 'ACL SETUSER <user> ~portcullis* ~{portcullis* +eval +evalsha +info +time +get +set +ping',
  },
  {
    form: /^ERR max number of clients/,
    code: 'D158',
    fix: () => 'CONFIG SET maxclients with a larger limit, or reduce WORKERS.',
  },
];

async function checkRedis({ deployment, timeout }: DoctorContext): Promise<Outcomes> {
  const { settings, nameOf } = deployment;
  if (settings === undefined) return skipped('the replay store is unknown without settings');
  const { replayStore: url, replayTimeout } = settings;
  const shown = showUrl(url);
  if (!/^rediss?[:+]/.test(url)) return skipped(`the replay store is ${shown}`);
  const redis = await import('@redis/client').catch(() => undefined);
  if (redis === undefined) {
    return problem('D154', { seen: 'the package @redis/client is missing', fix: 'npm install @redis/client' });
  }
  let options: RedisReplayOptions;
  try {
    options = await readRedisOptions(settings);
  } catch (error) {
    // The message of a StartFailure.
    return problem('D222', { seen: (error as Error).message, fix: 'Set readable PEM files.' });
  }
  const failure = await useStore(url, options, timeout);
  if (failure !== undefined) {
    const { isConnected, message } = failure;
    if (isConnected && /in time$/.test(message)) {
      const fix = 'Find the slow commands with SLOWLOG GET, or set a larger REPLAY_TIMEOUT.';
      return problem('D159', { seen: `${shown}: no response within ${replayTimeout} ms`, fix });
    }
    return explainFailure(message, shown, nameOf('replayStore'));
  }
  // The INFO of sentinels and of a cluster is not about one server.
  if (!/^rediss?:/.test(url)) return ok(`${shown} responds`);
  const info = await readServerInfo(redis, { url, timeout, tls: options.tls });
  return checkEviction(info, 'D153') ?? ok(`${shown} responds, Redis ${readField(info, 'redis_version')}`);
}

/** Error of the replay store, before or after it was connected. */
interface StoreFailure {
  readonly isConnected: boolean;
  readonly message: string;
}

/** Connects to the store as the service does, and records one made-up proof that expires. */
async function useStore(url: string, options: RedisReplayOptions, timeout: number): Promise<StoreFailure | undefined> {
  let settle: (cause: unknown) => void = () => {};
  const connected = new Promise<unknown>((resolve) => {
    settle = resolve;
  });
  const timer = setTimeout(() => settle(new Error(describeTimeout(timeout))), timeout);
  const store = await createRedisReplayStore(url, { ...options, onConnection: (_, cause) => settle(cause) });
  try {
    const cause = await connected;
    if (cause !== undefined) return { isConnected: false, message: messageOf(cause, timeout) };
    const outcome = await store.witness('portcullis-doctor', crypto.randomUUID(), Date.now() / 1000 + 1);
    if (!(outcome instanceof AccessError) || outcome.reason !== 'replay_store_unavailable') return undefined;
    return { isConnected: true, message: messageOf(outcome.cause, timeout) };
  } finally {
    clearTimeout(timer);
    store.close();
  }
}

/** Returns the message of an error of Redis, and only the code of any other error: it may contain the URL. */
function messageOf(cause: unknown, timeout: number): string {
  const message = cause instanceof Error ? cause.message : '';
  return /^[A-Z]+ |^no response|in time$/.test(message) ? message : describeError(cause, timeout);
}

function explainFailure(message: string, shown: string, setting: string): Outcome {
  const known = redisErrors.find(({ form }) => form.test(message));
  const word = /^(?:ERR )?[\w' ]{1,40}/.exec(message)?.[0].trim() ?? '';
  const fix = known?.fix(setting) ?? `Start Redis, or correct host and port in ${setting}.`;
  return problem(known?.code ?? 'D150', { seen: `${shown}: ${word}`, fix });
}

interface ServerOptions {
  readonly url: string;
  readonly timeout: number;
  readonly tls: RedisReplayOptions['tls'];
}

/** Reads the INFO of one server. Rejects if it cannot be reached. */
export async function readServerInfo(
  redis: typeof import('@redis/client'),
  { url, timeout, tls }: ServerOptions,
): Promise<string> {
  const limits = { connectTimeout: timeout, socketTimeout: timeout, reconnectStrategy: false } as const;
  const client = redis.createClient({
    url,
    RESP: 2,
    disableClientInfo: true,
    socket: tls === undefined ? limits : { ...limits, tls: true, ...tls },
  });
  // Rejections report errors. An event without a listener would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await client.info();
  } finally {
    client.destroy();
  }
}

const readField = (info: string, field: string): string => new RegExp(`^${field}:(\\S*)`, 'm').exec(info)?.[1] ?? '';

/** Reports a server that evicts records once its memory is full. */
export function checkEviction(info: string, code: Code): Outcome | undefined {
  const policy = readField(info, 'maxmemory_policy');
  if (policy === '' || policy === 'noeviction' || readField(info, 'maxmemory') === '0') return undefined;
  const fix = 'CONFIG SET maxmemory-policy noeviction';
  return problem(code, { seen: `maxmemory-policy is ${policy}`, expected: 'noeviction', fix });
}

export const redisCheck: DoctorCheck = {
  id: 'redis',
  title: 'Redis can be used as the replay store.',
  run: checkRedis,
};
