import type { RedisClientLike, RedisCommands, RedisSubscriber } from './redis-script.ts';
import { parseRedisUrl, type RedisConnectionOptions, type RedisNodes, type RedisTarget } from './redis-url.ts';

/** A connection to a Redis, its sentinels or a cluster, or a client that the caller has connected. */
export interface RedisLink {
  readonly commands: RedisCommands;
  /** Resolves once commands can be sent. */
  connect(): Promise<void>;
  /** Subscribes to channels, over a second connection if the link needs it. Resolves once messages arrive. */
  subscribe(channels: string[], onMessage: (message: string, channel: string) => void): Promise<void>;
  /** Closes the link; pending commands are rejected. */
  destroy(): void;
}

export interface LinkListener {
  /** Called when the link has ended, or cannot be opened. */
  onError(cause: unknown): void;
  /** Something came back, so that the connection is alive. */
  onAnswer(): void;
}

export interface RedisLinks {
  open(listener: LinkListener): RedisLink;
  /** True if all keys must be in one slot. */
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
    // A command sent without a connection would be queued, longer than its caller waits.
    evalSha: (sha, options) => (client.isReady === false ? rejectOffline() : client.evalSha(sha, options)),
    eval: (script, options) => client.eval(script, options),
  };
  return {
    isCluster: 'slots' in client,
    open({ onError }) {
      let subscriber: RedisSubscriber | undefined;
      return {
        commands,
        connect: async () => undefined,
        async subscribe(channels, onMessage) {
          if (client.duplicate === undefined)
            throw new TypeError('The client has no duplicate(), which subscribing needs');
          subscriber = client.duplicate();
          await startSubscriber(subscriber, { channels, onMessage, onError });
        },
        destroy: () => destroySubscriber(subscriber),
      };
    },
  };
}

interface Subscription {
  readonly channels: string[];
  readonly onMessage: (message: string, channel: string) => void;
  readonly onError: LinkListener['onError'];
}

async function startSubscriber(subscriber: RedisSubscriber, subscription: Subscription): Promise<void> {
  subscriber.on('error', subscription.onError);
  await subscriber.connect();
  await subscriber.subscribe(subscription.channels, subscription.onMessage);
}

function destroySubscriber(subscriber: RedisSubscriber | undefined): void {
  try {
    void Promise.resolve(subscriber?.destroy()).catch(() => undefined);
  } catch {
    // It was not connected.
  }
}

function rejectOffline(): Promise<never> {
  return Promise.reject(new Error('The client is not connected to Redis'));
}

/** Connects to a URL. Throws `TypeError` for one that is none of Redis, and for TLS options without a `rediss` URL. */
export function linkTo(redis: Redis, url: string, options: RedisConnectionOptions = {}): RedisLinks {
  if (options.tls !== undefined && !url.startsWith('rediss')) {
    throw new TypeError('tls: needs a URL that begins with rediss');
  }
  const target = { ...parseRedisUrl(url), connection: options };
  // Created before it is used, so that an invalid URL is reported immediately.
  openTarget(redis, target, { onError: () => undefined, onAnswer: () => undefined });
  return {
    isCluster: target.kind === 'cluster',
    open: (listener) => openTarget(redis, target, listener),
  };
}

type Target = RedisTarget & { readonly connection: RedisConnectionOptions };

function openTarget(redis: Redis, target: Target, listener: LinkListener): RedisLink {
  if (target.kind === 'single') return openSingle(redis, target, listener);
  return target.kind === 'sentinel' ? openSentinel(redis, target, listener) : openCluster(redis, target, listener);
}

const clientOptions = {
  // What is sent while there is no connection is rejected, and what is sent over it is bounded.
  disableOfflineQueue: true,
  commandsQueueMaxLength: maxUnanswered,
  disableClientInfo: true,
  maintNotifications: 'disabled',
  // A ping without a response keeps the connection idle, and an idle connection is dropped.
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

function openSingle(
  redis: Redis,
  target: Target & { readonly kind: 'single' },
  { onError, onAnswer }: LinkListener,
): RedisLink {
  const client = createSingle(redis, target);
  client.on('error', onError);
  client.on('ping-interval', onAnswer);
  let subscriber: RedisSubscriber | undefined;
  return {
    commands: client,
    connect: async () => void (await client.connect()),
    async subscribe(channels, onMessage) {
      subscriber = createSingle(redis, target);
      await startSubscriber(subscriber, { channels, onMessage, onError });
    },
    destroy() {
      destroySubscriber(subscriber);
      client.destroy();
    },
  };
}

function createSingle(redis: Redis, { url, connection: { tls } }: Target & { readonly kind: 'single' }) {
  try {
    return redis.createClient({
      url,
      RESP: 2,
      ...clientOptions,
      commandOptions,
      socket: { ...socket, ...(tls !== undefined && { tls: true as const, ...tls }) },
    });
  } catch {
    // No cause: the error of a URL holds its text, and that may hold a password.
    throw new TypeError('url: write redis://[user:password@]host[:port][/database], or rediss:// for TLS');
  }
}

function openSentinel(
  redis: Redis,
  target: Target & { readonly kind: 'sentinel' },
  { onError }: LinkListener,
): RedisLink {
  const options = { ...clientOptions, socket: socketOf(target) };
  const client = redis.createSentinel({
    name: target.name,
    RESP: 2,
    sentinelRootNodes: [...target.nodes],
    nodeClientOptions: { ...options, ...credentialsOf(target) },
    sentinelClientOptions: { ...options, ...target.connection.sentinel },
    commandOptions,
    // One connection for all proofs, pipelined: a client of a pool would serve one at a time.
    masterPoolSize: 1,
    reserveClient: true,
    maxCommandRediscovers: 0,
    passthroughClientErrorEvents: true,
  });
  // The client emits strings for errors of sentinels.
  client.on('error', (cause: unknown) => onError(cause instanceof Error ? cause : readError(String(cause))));
  client.on('client-error', ({ error }: { readonly error?: unknown }) => onError(error));
  return {
    commands: client,
    connect: async () => void (await client.connect()),
    subscribe: async (channels, onMessage) => void (await client.subscribe(channels, onMessage)),
    destroy: () => void client.destroy().catch(() => undefined),
  };
}

function readError(text: string): Error {
  return new Error(text.replace(/^.*?error: (?:\w*Error: )?/i, ''));
}

function openCluster(
  redis: Redis,
  target: Target & { readonly kind: 'cluster' },
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
    subscribe: (channels, onMessage) => client.subscribe(channels, onMessage),
    destroy: () => client.destroy(),
  };
}

function credentialsOf({ username, password }: RedisNodes) {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
}

function socketOf({ tls, connection }: RedisNodes & Pick<Target, 'connection'>) {
  return tls ? ({ ...socket, tls: true, ...connection.tls } as const) : socket;
}
