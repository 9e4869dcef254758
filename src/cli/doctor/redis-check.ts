import { createRedisReplayStore } from '../../core/dpop/replay-redis.ts';
import { AccessError } from '../../core/failures.ts';
import { showUrl } from '../../core/http/shown-url.ts';
import type { RevocationFollower } from '../../core/revocation/record.ts';
import { createRedisRevocationStore } from '../../core/revocation/redis-store.ts';
import { readRedisOptions } from '../../server/process/open-replay.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { type DoctorContext, describeError } from './context.ts';
import { type Finding, type FindingName, ok, problem, skipped } from './finding.ts';

/** Beginnings of messages of Redis, with the problem and its fix; the first match. `$` is the setting. */
const refusals: readonly (readonly [form: RegExp, name: FindingName, fix: string])[] = [
  [
    /^(?:WRONGPASS|NOAUTH|ERR (?:AUTH|invalid pass|Client sent AUTH|.*unauth))/,
    'redis_login',
    'Correct user and password in $. Percent-encode other characters than letters and digits.',
  ],
  [
    /^(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN)\b/,
    'redis_cluster',
    'Set $ to redis+cluster://host:port,…, or to a server without cluster mode.',
  ],
  [
    /^(?:READONLY|MISCONF|NOREPLICAS)\b/,
    'redis_readonly',
    'Set $ to the master, or to its sentinels. If it is the master, free its disk.',
  ],
  [/^OOM\b/, 'redis_full', 'CONFIG SET maxmemory with a larger limit, or remove other data.'],
  [
    /^(?:NOPERM|ERR unknown command)/,
    'redis_permissions',
    'ACL SETUSER <user> ~portcullis* ~{portcullis* +eval +evalsha +info +time +get +set +ping',
  ],
  [/^ERR max number of clients/, 'redis_clients', 'CONFIG SET maxclients with a larger limit, or run fewer processes.'],
];

/** Checks each store as the service uses it. */
export async function checkRedis({ deployment, timeout }: DoctorContext): Promise<readonly Finding[]> {
  const { settings, nameOf } = deployment;
  if (settings === undefined) return [skipped('redis', 'the stores are unknown without settings')];
  const used = (['replayStore', 'revocationStore'] as const).filter((name) => /^rediss?[:+]/.test(settings[name]));
  if (used.length === 0) return [skipped('redis', 'no store is in Redis')];
  const redis = await import('@redis/client').catch(() => undefined);
  if (redis === undefined) {
    const seen = 'the package @redis/client is missing';
    return [problem('redis_unreachable', { seen, fix: 'npm install @redis/client' })];
  }
  const findings = used.map(async (setting): Promise<Finding> => {
    const url = settings[setting];
    const shown = showUrl(url);
    const message = await tryStore(timeout, setting === 'replayStore' ? useReplay(settings) : useCutoffs(settings));
    if (message === undefined) return (await findEviction(redis, url, timeout)) ?? ok('redis', `${shown} responds`);
    if (/in time$/.test(message)) {
      const fix = `Find the slow commands with SLOWLOG GET, or set a larger ${nameOf('replayTimeout')}.`;
      return problem('redis_slow', { seen: `${shown}: no response within ${settings.replayTimeout} ms`, fix });
    }
    const [, name, fix] = refusals.find(([form]) => form.test(message)) ?? [];
    const seen = `${shown}: ${/^(?:ERR )?[\w' ]{1,40}/.exec(message)?.[0].trim()}`;
    const usual = 'Start Redis, or correct host and port in $.';
    return problem(name ?? 'redis_unreachable', { seen, fix: (fix ?? usual).replace('$', nameOf(setting)) });
  });
  return Promise.all(findings);
}

/** Called with an error, or without one once the store was used. */
type Settle = (cause?: unknown) => void;
/** Opens a store and uses it as the service does. Returns what closes it. */
type UseStore = (settle: Settle) => Promise<() => void>;

/** Returns the message of an error of Redis, and only the code of any other error: it may contain the URL. */
async function tryStore(timeout: number, use: UseStore): Promise<string | undefined> {
  const { promise, resolve } = settleable();
  const timer = setTimeout(() => resolve(new Error(`no response within ${timeout / 1000} s`)), timeout);
  const close = await use(resolve);
  const cause = await promise;
  clearTimeout(timer);
  close();
  if (cause === undefined) return undefined;
  const message = cause instanceof Error ? cause.message : '';
  return /^[A-Z]+ |^no response|in time$/.test(message) ? message : describeError(cause);
}

function settleable(): { readonly promise: Promise<unknown>; readonly resolve: Settle } {
  let resolve: Settle = () => undefined;
  const promise = new Promise<unknown>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Subscribes, and loads the cutoffs. */
const useCutoffs =
  (settings: Settings): UseStore =>
  async (settle) => {
    const store = await createRedisRevocationStore(settings.revocationStore, {
      sentinel: readRedisOptions(settings).sentinel ?? {},
      onConnection: (_, cause) => cause !== undefined && settle(cause),
    });
    const onContact = (): void => settle();
    const follower: RevocationFollower = {
      apply: () => [],
      noteInvalid: () => undefined,
      onContact,
      records: () => [],
    };
    store.follow(follower);
    return () => store.unfollow(follower);
  };

/** Records one made-up proof, which expires. */
const useReplay =
  (settings: Settings): UseStore =>
  async (settle) => {
    const record = async (cause: unknown): Promise<void> => {
      if (cause !== undefined) return settle(cause);
      const outcome = await store.witness('portcullis-doctor', crypto.randomUUID(), Date.now() / 1000 + 1);
      const isUnavailable = outcome instanceof AccessError && outcome.reason === 'replay_store_unavailable';
      settle(isUnavailable ? outcome.cause : undefined);
    };
    const onConnection = (_: unknown, cause: unknown): void => void record(cause);
    const store = await createRedisReplayStore(settings.replayStore, { ...readRedisOptions(settings), onConnection });
    return store.close;
  };

/** Reports a server that evicts records once its memory is full; nothing if it does not say. */
async function findEviction(
  redis: typeof import('@redis/client'),
  url: string,
  timeout: number,
): Promise<Finding | undefined> {
  // INFO of sentinels and of a cluster is not about one server; a user may lack it.
  if (!/^rediss?:/.test(url)) return undefined;
  const socket = { connectTimeout: timeout, socketTimeout: timeout, reconnectStrategy: false } as const;
  const client = redis.createClient({ url, RESP: 2, disableClientInfo: true, socket });
  // Rejections report errors. An event without a listener would end the process.
  client.on('error', () => undefined);
  const info = await client
    .connect()
    .then(() => client.info())
    .catch(() => '');
  client.destroy();
  const [policy, limit] = ['maxmemory_policy', 'maxmemory'].map(
    (name) => new RegExp(`^${name}:(\\S*)`, 'm').exec(info)?.[1],
  );
  if (policy === undefined || policy === 'noeviction' || limit === '0') return undefined;
  const fix = 'CONFIG SET maxmemory-policy noeviction';
  return problem('redis_evicts', { seen: `maxmemory-policy is ${policy}`, expected: 'noeviction', fix });
}
