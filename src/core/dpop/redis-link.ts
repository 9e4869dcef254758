import { attempt } from '../attempt.ts';
import { loadRedis } from './load-redis.ts';
import type { RedisClientLike, RedisCommands, RedisSubscriber } from './redis-script.ts';
import { parseRedisUrl, type RedisConnectionOptions, type RedisTarget } from './redis-url.ts';

/** A connection to a Redis, its sentinels or a cluster, or a client that the caller has connected. */
export interface RedisLink {
  readonly commands: RedisCommands;
  /** Resolves once commands can be sent. */
  connect(): Promise<unknown>;
  /** Subscribes to channels, over a second connection if the link needs it. Resolves once messages arrive. */
  subscribe: RedisSubscriber['subscribe'];
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
type Target<K extends RedisTarget['kind']> = RedisTarget & {
  readonly kind: K;
  readonly connection: RedisConnectionOptions;
};
type OwnClient = RedisClientLike & Omit<RedisSubscriber, 'on'> & Pick<NodeJS.EventEmitter, 'on'>;

/** Links to the target of a store. Rejects with `TypeError` for an invalid URL, and with `Error` without `@redis/client`. */
export async function openLinks(
  target: string | RedisClientLike,
  options: RedisConnectionOptions,
): Promise<RedisLinks> {
  return typeof target === 'string' ? linkTo(await loadRedis(), target, options) : useClient(target);
}

/** Uses a client that is connected elsewhere; it is never closed here. */
export function useClient(client: RedisClientLike): RedisLinks {
  const commands: RedisCommands = {
    // A command sent without a connection would be queued, longer than its caller waits.
    evalSha: (sha, options) => (client.isReady === false ? Promise.reject(offline()) : client.evalSha(sha, options)),
    eval: (script, options) => client.eval(script, options),
  };
  return {
    isCluster: 'slots' in client,
    open: ({ onError }) => ({ commands, connect: async () => undefined, ...duplicateOf(client, onError) }),
  };
}

/** The second connection of a client that does not subscribe itself. */
function duplicateOf(
  client: Pick<RedisClientLike, 'duplicate'>,
  onError: LinkListener['onError'],
): Pick<RedisLink, 'subscribe' | 'destroy'> {
  let duplicate: RedisSubscriber | undefined;
  return {
    async subscribe(channels, onMessage) {
      duplicate = client.duplicate?.();
      if (duplicate === undefined) throw new TypeError('The client has no duplicate(), which subscribing needs');
      duplicate.on('error', onError);
      await duplicate.connect();
      await duplicate.subscribe(channels, onMessage);
    },
    destroy: () => void attempt(() => duplicate?.destroy()),
  };
}

const offline = (): Error => new Error('The client is not connected to Redis');

/** Connects to a URL. Throws `TypeError` for one that is none of Redis, and for TLS options without a `rediss` URL. */
export function linkTo(redis: Redis, url: string, connection: RedisConnectionOptions = {}): RedisLinks {
  if (connection.tls !== undefined && !url.startsWith('rediss')) {
    throw new TypeError('tls: needs a URL that begins with rediss');
  }
  const target = { ...parseRedisUrl(url), connection };
  // Created before it is used, so that an invalid URL is reported immediately.
  createClient(redis, target);
  return {
    isCluster: target.kind === 'cluster',
    open({ onError, onAnswer }) {
      const client = createClient(redis, target);
      // The client of sentinels emits strings for their errors.
      client.on('error', (cause: unknown) => onError(cause instanceof Error ? cause : readError(String(cause))));
      client.on('client-error', ({ error }: { readonly error?: unknown }) => onError(error));
      let missing = 0;
      client.on('ping-interval', () => {
        missing = 0;
        onAnswer();
      });
      let watch: NodeJS.Timeout | undefined;
      const watchPings = (): void => {
        watch = setInterval(() => {
          if (missing++ > mostMissing) onError(new Error('Redis does not respond'));
        }, clientOptions.pingInterval).unref();
      };
      const subscriber = target.kind === 'single' ? duplicateOf(client, onError) : client;
      return {
        commands: client,
        async connect() {
          await client.connect();
          if (target.kind === 'single') watchPings();
        },
        subscribe: (channels, onMessage) => subscriber.subscribe(channels, onMessage),
        destroy() {
          clearInterval(watch);
          for (const each of new Set([subscriber, client])) attempt(() => each.destroy());
        },
      };
    },
  };
}

const readError = (text: string): Error => new Error(text.replace(/^.*?error: (?:\w*Error: )?/i, ''));

function createClient(redis: Redis, target: Target<RedisTarget['kind']>): OwnClient {
  if (target.kind === 'single') return createSingle(redis, target);
  return target.kind === 'sentinel' ? createSentinel(redis, target) : createCluster(redis, target);
}

const clientOptions = {
  // What is sent while there is no connection is rejected, and what is sent over it is bounded.
  disableOfflineQueue: true,
  commandsQueueMaxLength: 10_000,
  disableClientInfo: true,
  maintNotifications: 'disabled',
  // Milliseconds. With what follows, a lost connection is found and replaced within 5 s.
  pingInterval: 1_000,
} as const;

/** Pings in a row whose responses may be missing. By time, a stall of this process would look like a silent Redis. */
const mostMissing = 1;

/** Our own timer tells each caller; this one would only take a command back that is not yet written. */
const commandOptions = { timeout: 0 } as const;

const socket = {
  connectTimeout: 1_500,
  // Each link is made anew when it has ended: whatever else there is now is found then.
  reconnectStrategy: false,
} as const;

function createSingle(redis: Redis, { url, connection: { tls } }: Target<'single'>) {
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

function createSentinel(redis: Redis, target: Target<'sentinel'>) {
  const options = { ...clientOptions, socket: socketOf(target) };
  return redis.createSentinel({
    name: target.name,
    RESP: 2,
    sentinelRootNodes: [...target.nodes],
    nodeClientOptions: { ...options, ...target.credentials },
    sentinelClientOptions: { ...options, ...target.connection.sentinel },
    commandOptions,
    // One connection for all proofs, pipelined: a client of a pool would serve one at a time.
    masterPoolSize: 1,
    reserveClient: true,
    maxCommandRediscovers: 0,
    passthroughClientErrorEvents: true,
  });
}

function createCluster(redis: Redis, target: Target<'cluster'>) {
  return redis.createCluster({
    RESP: 2,
    rootNodes: target.nodes.map((node) => ({ socket: node })),
    defaults: { ...clientOptions, ...target.credentials, socket: socketOf(target) },
    commandOptions,
    // All records are in one slot: the other masters need no connection.
    minimizeConnections: true,
  });
}

/** These groups do not report pings: an idle connection is dropped. */
function socketOf({ tls, connection }: Target<'sentinel' | 'cluster'>) {
  return { ...socket, socketTimeout: 2_500, ...(tls && { tls: true as const, ...connection.tls }) };
}
