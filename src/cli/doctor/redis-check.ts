import { limitTime } from '../../core/attempt.ts';
import { createRedisReplayStore } from '../../core/dpop/replay-redis.ts';
import { AccessError } from '../../core/failures.ts';
import { showUrl } from '../../core/http/shown-url.ts';
import { createRedisRevocationStore } from '../../core/revocation/redis-store.ts';
import { readRedisOptions } from '../../server/process/open-replay.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { type DoctorContext, describeError, type Findings } from './context.ts';
import { type Finding, type FindingName, ok, problem, skipped } from './finding.ts';

type Problem = readonly [name: FindingName, form: RegExp, fix: string];

/** Problems of connections with TLS, by code or message of Node and OpenSSL. The client of sentinels has no codes. */
const tlsProblems: readonly Problem[] = [
  [
    'redis_tls',
    /SELF_SIGNED|self-signed|UNABLE_TO_|unable to/,
    'Trust the authority of Redis: NODE_EXTRA_CA_CERTS=/path/of/that/authority.pem',
  ],
  ['redis_tls', /ALTNAME|altnames/, 'Set $ to the name that the certificate of Redis is for.'],
  [
    'redis_tls',
    /EXPIRED|NOT_YET_VALID|expired|not yet valid/,
    'Renew the certificate of Redis, or set the clock of this host.',
  ],
  [
    'redis_tls',
    /CERTIFICATE_REQUIRED|certificate required/i,
    'Set tls-auth-clients no in Redis and write user:password@ in $.',
  ],
  [
    'redis_tls',
    // A port without TLS awaits the end of a command.
    /^Connection timeout$|EPROTO|WRONG_VERSION|PACKET_LENGTH|wrong version|packet length/,
    'If the port does not speak TLS, write redis instead of rediss in $. Otherwise correct host and port, or the firewall.',
  ],
];
/** Problems by the messages of Redis and its client, with fixes. `$` is the setting. The first that matches counts. */
const problems: readonly Problem[] = [
  [
    'redis_login',
    /^(?:WRONGPASS|NOAUTH|ERR (?:AUTH|invalid pass|Client sent AUTH|.*unauth))/,
    'Correct user and password in $. Percent-encode other characters than letters and digits.',
  ],
  [
    'redis_cluster',
    /^(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN)\b|^ERR SELECT is not allowed in cluster/,
    'Set $ to redis+cluster://host:port,…, or to a server without cluster mode.',
  ],
  ['redis_url', /^ERR DB index/, 'Write a database into $ that Redis has: CONFIG GET databases'],
  ['redis_url', /^ERR .*cluster support disabled/, 'Set $ to redis://host:port: this server is not part of a cluster.'],
  ['redis_url', /^ERR unknown command .?SENTINEL/i, 'Set $ to redis://host:port, or to the port of the sentinels.'],
  [
    'redis_readonly',
    /^(?:READONLY|MISCONF|NOREPLICAS)\b/,
    'Set $ to the master, or to its sentinels. If it is the master, free its disk.',
  ],
  ['redis_full', /^OOM\b/, 'CONFIG SET maxmemory with a larger limit, or remove other data.'],
  [
    'redis_permissions',
    /^(?:NOPERM|ERR unknown command)/,
    'ACL SETUSER <user> ~portcullis* ~{portcullis* +eval +evalsha +info +time +get +set +ping; for REVOCATION_STORE, the commands of docs/other-proofs.md too',
  ],
  ['redis_clients', /^ERR max number of clients/, 'CONFIG SET maxclients with a larger limit, or run fewer processes.'],
  [
    'redis_unreachable',
    /^ECONNRESET$|^Socket closed/,
    'If the port speaks TLS, write rediss instead of redis in $. Otherwise see the log of Redis.',
  ],
  ['redis_slow', /in time$/, 'Find the slow commands with SLOWLOG GET, or set a larger REPLAY_TIMEOUT.'],
];
const unreachable: Problem = ['redis_unreachable', /$/, 'Start Redis, or correct host and port in $.'];
/** Messages that cannot contain the URL. */
const safeMessage =
  /^[A-Z]+ |^no response|in time$|^Connection timeout$|^Socket closed unexpectedly$|^[a-z -]*certificate[a-z -]*$/;

/** Opens a store and uses it as the service does. Calls `settle` with the error, if there is one; returns what closes it. */
const openStores = {
  /** Records one made-up proof, which expires. */
  async replayStore(settings: Settings, settle: (cause?: unknown) => void) {
    const onConnection = async (_: unknown, cause: unknown): Promise<void> => {
      if (cause !== undefined) return settle(cause);
      const outcome = await store.witness('portcullis-doctor', crypto.randomUUID(), Date.now() / 1000 + 1);
      settle(
        outcome instanceof AccessError && outcome.reason === 'replay_store_unavailable' ? outcome.cause : undefined,
      );
    };
    const store = await createRedisReplayStore(settings.replayStore, { ...readRedisOptions(settings), onConnection });
    return store.close;
  },
  /** Subscribes, and loads the cutoffs. */
  async revocationStore(settings: Settings, settle: (cause?: unknown) => void) {
    const { sentinel = {} } = readRedisOptions(settings);
    const onConnection = (_: unknown, cause: unknown): void => settle(cause);
    const store = await createRedisRevocationStore(settings.revocationStore, { sentinel, onConnection });
    const nothing = (): void => {};
    const follower = { apply: () => [], records: () => [], noteInvalid: nothing, onContact: nothing };
    store.follow(follower);
    return () => store.unfollow(follower);
  },
} as const;

export async function* checkRedis({ deployment: { settings, write }, timeoutSeconds }: DoctorContext): Findings {
  if (settings === undefined) return yield skipped('redis', 'the stores are unknown without settings');
  const used = (['replayStore', 'revocationStore'] as const).filter((name) => /^rediss?[:+]/.test(settings[name]));
  if (used.length === 0) return yield skipped('redis', 'no store is in Redis');
  const redis = await import('@redis/client').catch(() => undefined);
  if (redis === undefined) {
    return yield problem('redis_unreachable', 'the package @redis/client is missing', 'npm install @redis/client');
  }
  const examine = async (setting: (typeof used)[number]): Promise<Finding> => {
    const shown = showUrl(settings[setting]);
    const cause = await tryStore(settings, setting, timeoutSeconds);
    if (cause === undefined) {
      return (await findEviction(redis, settings[setting], timeoutSeconds)) ?? ok('redis', `${shown} responds`);
    }
    const { message } = cause as Error;
    // The client of sentinels has codes only in messages.
    const [code = describeError(cause)] = /\bE[A-Z]{4,}\b/.exec(message) ?? [];
    const text = safeMessage.test(message) ? message : code;
    const possible = [...(/^rediss/.test(settings[setting]) ? tlsProblems : []), ...problems];
    const [name, , fix] = possible.find(([, form]) => form.test(text) || form.test(message)) ?? unreachable;
    const seen = name === 'redis_slow' ? `no response within ${settings.replayTimeout} ms` : text;
    const short = /^(?:ERR )?[\w' -]{1,60}/.exec(seen)?.[0].trim();
    return problem(name, `${shown}: ${short}`, fix.replace('$', write(setting)));
  };
  yield* await Promise.all(used.map(examine));
}

/** Uses a store. Returns the error, if there is one. */
async function tryStore(settings: Settings, setting: keyof typeof openStores, timeoutSeconds: number) {
  let settle = (_?: unknown): void => {};
  const outcome = new Promise((resolve) => {
    settle = resolve;
  });
  const close = await openStores[setting](settings, settle);
  const late = new Error(`no response within ${timeoutSeconds} s`);
  return limitTime(outcome, timeoutSeconds, () => late).finally(close);
}

/** Reports a server that evicts records once its memory is full; nothing if it does not say. */
async function findEviction(redis: typeof import('@redis/client'), url: string, timeoutSeconds: number) {
  // INFO of sentinels and of a cluster is not about one server; a user may lack it.
  if (!/^rediss?:/.test(url)) return undefined;
  const timeout = timeoutSeconds * 1000;
  const socket = { connectTimeout: timeout, socketTimeout: timeout, reconnectStrategy: false } as const;
  const client = redis.createClient({ url, RESP: 2, disableClientInfo: true, socket });
  // Rejections report errors. An event without a listener would end the process.
  client.on('error', () => undefined);
  const connected = await client.connect().catch(() => undefined);
  const info = (await connected?.info().catch(() => undefined)) ?? '';
  client.destroy();
  const read = (name: string): string | undefined => new RegExp(`^${name}:(\\S*)`, 'm').exec(info)?.[1];
  const policy = read('maxmemory_policy') ?? 'noeviction';
  if (policy === 'noeviction' || read('maxmemory') === '0') return undefined;
  const details = { expected: 'noeviction', fix: 'CONFIG SET maxmemory-policy noeviction' };
  return problem('redis_evicts', `maxmemory-policy is ${policy}`, details);
}
