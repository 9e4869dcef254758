import type { RedisClientLike, RedisCommands } from './redis-script.ts';
import { parseRedisUrl, type RedisNodes, type RedisTarget } from './redis-url.ts';

/** One connection to a Redis, its sentinels or a cluster, or a client that somebody else has connected. */
export interface RedisLink {
  readonly commands: RedisCommands;
  /** Resolves once commands can be sent. */
  connect(): Promise<void>;
  /** Gives it up; what waits for an answer is rejected. */
  destroy(): void;
}

/** What a link tells by itself. */
export interface LinkListener {
  /** It has ended, or cannot be made. */
  onError(cause: unknown): void;
  /** Something came back, so that the connection is alive. */
  onAnswer(): void;
}

/** Opens links, one after the other. */
export interface RedisLinks {
  open(listener: LinkListener): RedisLink;
  /** Whether all keys must be in one slot. */
  readonly isCluster: boolean;
}

type Redis = typeof import('@redis/client');

const maxUnanswered = 10_000;
// Milliseconds. Together they find a lost connection and have a new one within 5 s.
const connectTimeout = 1_500;
const pingInterval = 1_000;
const idleTimeout = 2_500;

/** Uses a client that is connected elsewhere; it is never closed here. */
export function useClient(client: RedisClientLike): RedisLinks {
  const commands: RedisCommands = {
    // What is sent while there is no connection would be queued, and nobody waits for it that long.
    evalSha: (sha, options) => (client.isReady === false ? rejectOffline() : client.evalSha(sha, options)),
    eval: (script, options) => client.eval(script, options),
  };
  return {
    isCluster: 'slots' in client,
    open: () => ({ commands, connect: async () => undefined, destroy: () => undefined }),
  };
}

function rejectOffline(): Promise<never> {
  return Promise.reject(new Error('The client is not connected to Redis'));
}

/** Connects to a URL. Throws `TypeError` for one that is none of Redis. */
export function linkTo(redis: Redis, url: string): RedisLinks {
  const target = parseRedisUrl(url);
  // Made once before it is used, so that a URL that cannot work is told at once.
  openTarget(redis, target, { onError: () => undefined, onAnswer: () => undefined });
  return {
    isCluster: target.kind === 'cluster',
    open: (listener) => openTarget(redis, target, listener),
  };
}

function openTarget(redis: Redis, target: RedisTarget, listener: LinkListener): RedisLink {
  if (target.kind === 'single') return openSingle(redis, target.url, listener);
  return target.kind === 'sentinel' ? openSentinel(redis, target, listener) : openCluster(redis, target, listener);
}

const clientOptions = {
  // What is sent while there is no connection is rejected, and what is sent over it is bounded.
  disableOfflineQueue: true,
  commandsQueueMaxLength: maxUnanswered,
  disableClientInfo: true,
  maintNotifications: 'disabled',
  // A ping that is not answered keeps the connection idle, and idle for so long it is dropped.
  pingInterval,
} as const;

/** Our own timer tells each caller; this one would only take a command back that is not yet written. */
const commandOptions = { timeout: 0 } as const;

const socket = {
  connectTimeout,
  socketTimeout: idleTimeout,
  // Each link is made anew when it has ended: whatever else there is now is found then.
  reconnectStrategy: false,
} as const;

function openSingle(redis: Redis, url: string, { onError, onAnswer }: LinkListener): RedisLink {
  const client = createSingle(redis, url);
  client.on('error', onError);
  client.on('ping-interval', onAnswer);
  return {
    commands: client,
    connect: async () => void (await client.connect()),
    destroy: () => client.destroy(),
  };
}

function createSingle(redis: Redis, url: string) {
  try {
    return redis.createClient({ url, RESP: 2, ...clientOptions, commandOptions, socket });
  } catch {
    // No cause: the error of a URL holds its text, and that may hold a password.
    throw new TypeError('url: write redis://[user:password@]host[:port][/database], or rediss:// for TLS');
  }
}

function openSentinel(
  redis: Redis,
  target: RedisTarget & { readonly kind: 'sentinel' },
  { onError }: LinkListener,
): RedisLink {
  const options = { ...clientOptions, ...credentialsOf(target), socket: socketOf(target) };
  const client = redis.createSentinel({
    name: target.name,
    RESP: 2,
    sentinelRootNodes: [...target.nodes],
    nodeClientOptions: options,
    sentinelClientOptions: options,
    commandOptions,
    // One connection for all proofs, each answered in turn: a client of a pool would serve one at a time.
    masterPoolSize: 1,
    reserveClient: true,
    maxCommandRediscovers: 0,
    passthroughClientErrorEvents: true,
  });
  client.on('error', onError);
  client.on('client-error', () => onError(new Error('A connection to Redis has ended')));
  return {
    commands: client,
    connect: async () => void (await client.connect()),
    destroy: () => void client.destroy().catch(() => undefined),
  };
}

function openCluster(
  redis: Redis,
  target: RedisTarget & { readonly kind: 'cluster' },
  { onError }: LinkListener,
): RedisLink {
  const client = redis.createCluster({
    RESP: 2,
    rootNodes: target.nodes.map(({ host, port }) => ({ socket: { host, port } })),
    defaults: { ...clientOptions, ...credentialsOf(target), socket: socketOf(target) },
    commandOptions,
    // All records are in one slot: the other masters need no connection.
    minimizeConnections: true,
  });
  client.on('error', onError);
  return {
    commands: client,
    connect: async () => void (await client.connect()),
    destroy: () => client.destroy(),
  };
}

function credentialsOf({ username, password }: RedisNodes) {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
}

function socketOf({ tls }: RedisNodes) {
  return tls ? ({ ...socket, tls: true } as const) : socket;
}
