import { createRedisReplayStore, type RedisReplayOptions } from '../../core/dpop/replay-redis.ts';
import { AccessError } from '../../core/failures.ts';
import { showUrl } from '../../core/http/shown-url.ts';
import type { RevocationFollower } from '../../core/revocation/record.ts';
import { createRedisRevocationStore } from '../../core/revocation/redis-store.ts';
import { readRedisOptions } from '../../server/process/open-replay.ts';
import { type DoctorContext, describeError } from './context.ts';
import { type Finding, type FindingName, ok, problem, skipped } from './finding.ts';

interface RedisError {
  /** Beginning of the message of Redis or of its client. */
  readonly form: RegExp;
  readonly name: FindingName;
  readonly fix: (setting: string) => string;
}

/** First match. */
const redisErrors: readonly RedisError[] = [
  {
    form: /^(?:WRONGPASS|NOAUTH|ERR AUTH|ERR invalid password|ERR Client sent AUTH|ERR Protocol error: unauthenticated)/,
    name: 'redis_login',
    fix: (setting) =>
      `Correct user and password in ${setting}. Percent-encode other characters than letters and digits.`,
  },
  {
    form: /^(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN)\b/,
    name: 'redis_cluster',
    fix: (setting) => `Set ${setting} to redis+cluster://host:port,…, or to a server without cluster mode.`,
  },
  {
    form: /^(?:READONLY|MISCONF|NOREPLICAS)\b/,
    name: 'redis_readonly',
    fix: (setting) => `Set ${setting} to the master, or to its sentinels. If it is the master, free its disk.`,
  },
  { form: /^OOM\b/, name: 'redis_full', fix: () => 'CONFIG SET maxmemory with a larger limit, or remove other data.' },
  {
    form: /^(?:NOPERM|ERR unknown command)/,
    name: 'redis_permissions',
    fix: () => 'ACL SETUSER <user> ~portcullis* ~{portcullis* +eval +evalsha +info +time +get +set +ping',
  },
  {
    form: /^ERR max number of clients/,
    name: 'redis_clients',
    fix: () => 'CONFIG SET maxclients with a larger limit, or run fewer processes.',
  },
];

/** Checks each store as the service uses it. */
export async function checkRedis({ deployment, timeout }: DoctorContext): Promise<readonly Finding[]> {
  const { settings, nameOf } = deployment;
  if (settings === undefined) return [skipped('redis', 'the stores are unknown without settings')];
  const { replayTimeout } = settings;
  const used = (['replayStore', 'revocationStore'] as const).filter((name) => /^rediss?[:+]/.test(settings[name]));
  if (used.length === 0) return [skipped('redis', 'no store is in Redis')];
  const redis = await import('@redis/client').catch(() => undefined);
  if (redis === undefined) {
    const seen = 'the package @redis/client is missing';
    return [problem('redis_unreachable', { seen, fix: 'npm install @redis/client' })];
  }
  const options = readRedisOptions(settings);
  const findings = used.map(async (setting): Promise<Finding> => {
    const url = settings[setting];
    const shown = showUrl(url);
    const failure = await (setting === 'replayStore' ? useReplay : useRevocations)(url, options, timeout);
    if (failure?.isConnected && /in time$/.test(failure.message)) {
      const fix = `Find the slow commands with SLOWLOG GET, or set a larger ${nameOf('replayTimeout')}.`;
      return problem('redis_slow', { seen: `${shown}: no response within ${replayTimeout} ms`, fix });
    }
    if (failure !== undefined) return explainFailure(failure.message, shown, nameOf(setting));
    // INFO of sentinels and of a cluster is not about one server; a user may lack it.
    const info = /^rediss?:/.test(url) ? await readServerInfo(redis, url, timeout) : '';
    return findEviction(info) ?? ok('redis', `${shown} responds`);
  });
  return Promise.all(findings);
}

/** Error of the replay store, before or after it was connected. */
interface StoreFailure {
  readonly isConnected: boolean;
  readonly message: string;
}

/** Subscribes and loads the cutoffs as the service does. */
async function useRevocations(
  url: string,
  { sentinel = {} }: RedisReplayOptions,
  timeout: number,
): Promise<StoreFailure | undefined> {
  let settle: (cause: unknown) => void = () => {};
  const connected = new Promise<unknown>((resolve) => {
    settle = resolve;
  });
  const timer = setTimeout(() => settle(new Error(`no response within ${timeout / 1000} s`)), timeout);
  const store = await createRedisRevocationStore(url, {
    sentinel,
    onConnection: (_, cause) => cause !== undefined && settle(cause),
  });
  const onContact = (): void => settle(undefined);
  const follower: RevocationFollower = { apply: () => [], noteInvalid: () => undefined, onContact, records: () => [] };
  store.follow(follower);
  try {
    const cause = await connected;
    return cause === undefined ? undefined : { isConnected: false, message: messageOf(cause) };
  } finally {
    clearTimeout(timer);
    store.unfollow(follower);
  }
}

/** Connects to the store as the service does, and records one made-up proof that expires. */
async function useReplay(url: string, options: RedisReplayOptions, timeout: number): Promise<StoreFailure | undefined> {
  let settle: (cause: unknown) => void = () => {};
  const connected = new Promise<unknown>((resolve) => {
    settle = resolve;
  });
  const timer = setTimeout(() => settle(new Error(`no response within ${timeout / 1000} s`)), timeout);
  const store = await createRedisReplayStore(url, { ...options, onConnection: (_, cause) => settle(cause) });
  try {
    const cause = await connected;
    if (cause !== undefined) return { isConnected: false, message: messageOf(cause) };
    const outcome = await store.witness('portcullis-doctor', crypto.randomUUID(), Date.now() / 1000 + 1);
    if (!(outcome instanceof AccessError) || outcome.reason !== 'replay_store_unavailable') return undefined;
    return { isConnected: true, message: messageOf(outcome.cause) };
  } finally {
    clearTimeout(timer);
    store.close();
  }
}

/** Returns the message of an error of Redis, and only the code of any other error: it may contain the URL. */
function messageOf(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : '';
  return /^[A-Z]+ |^no response|in time$/.test(message) ? message : describeError(cause);
}

function explainFailure(message: string, shown: string, setting: string): Finding {
  const known = redisErrors.find(({ form }) => form.test(message));
  const word = /^(?:ERR )?[\w' ]{1,40}/.exec(message)?.[0].trim() ?? '';
  const fix = known?.fix(setting) ?? `Start Redis, or correct host and port in ${setting}.`;
  return problem(known?.name ?? 'redis_unreachable', { seen: `${shown}: ${word}`, fix });
}

/** Reads the INFO of one server; empty if it refuses. */
async function readServerInfo(redis: typeof import('@redis/client'), url: string, timeout: number): Promise<string> {
  const socket = { connectTimeout: timeout, socketTimeout: timeout, reconnectStrategy: false } as const;
  const client = redis.createClient({ url, RESP: 2, disableClientInfo: true, socket });
  // Rejections report errors. An event without a listener would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await client.info();
  } catch {
    return '';
  } finally {
    client.destroy();
  }
}

const readField = (info: string, field: string): string => new RegExp(`^${field}:(\\S*)`, 'm').exec(info)?.[1] ?? '';

/** Reports a server that evicts records once its memory is full. */
function findEviction(info: string): Finding | undefined {
  const policy = readField(info, 'maxmemory_policy');
  if (policy === '' || policy === 'noeviction' || readField(info, 'maxmemory') === '0') return undefined;
  const fix = 'CONFIG SET maxmemory-policy noeviction';
  return problem('redis_evicts', { seen: `maxmemory-policy is ${policy}`, expected: 'noeviction', fix });
}
