import { callable, isObject, isWithin, type OptionCheck } from '../option-members.ts';

/** Options of a connection that a URL cannot have. */
export interface RedisConnectionOptions {
  /** PEM files of a `rediss` URL: authorities instead of the default ones, and a client certificate with its key. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** Credentials for sentinels. The credentials of the URL are for Redis itself. Default: none. */
  readonly sentinel?: { readonly username?: string; readonly password?: string };
}

/** Members of the options of every store in Redis. */
export const redisMembers = {
  timeout: [isWithin(Number.MIN_VALUE, 60), 'write seconds above 0, 60 at most'],
  onConnection: callable,
  tls: [isObject, 'write an object with ca, cert and key in PEM'],
  sentinel: [isObject, 'write an object with username and password'],
} as const satisfies Readonly<Record<string, OptionCheck>>;

export type RedisTarget =
  | { readonly kind: 'single'; readonly url: string }
  | (RedisNodes & { readonly kind: 'sentinel'; readonly name: string })
  | (RedisNodes & { readonly kind: 'cluster' });

/** Several nodes with the same credentials. */
interface RedisNodes {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly tls: boolean;
  readonly credentials: { readonly username?: string; readonly password?: string };
}

const fix =
  'url: write redis://[user:password@]host[:port][/database], redis+sentinel://[user:password@]host[:port],…/NAME, ' +
  'or redis+cluster://[user:password@]host[:port],…; rediss instead of redis for TLS';
const several = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^@/]*)@)?([^@/]+)(?:\/([^/]*))?$/;
const single = /^rediss?:\/\//;
const database = /^(?:\/\d*)?$/;
const nodeGrammar = /^([\w.~-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i;
const defaultPorts = { sentinel: 26_379, cluster: 6379 } as const;
const maxPort = 65_535;

/** Reads the URL of a Redis, of its sentinels or of a cluster. Throws `TypeError` without its text: it may hold a password. */
export function parseRedisUrl(url: string): RedisTarget {
  const [, scheme, kind, credentials = '', hosts = '', name = ''] = several.exec(url) ?? [];
  if (kind === undefined) {
    if (!single.test(url) || !URL.canParse(url)) throw new TypeError(fix);
    const { pathname, username, password } = new URL(url);
    if (!database.test(pathname)) throw new TypeError(fix);
    for (const text of [username, password]) decode(text);
    return { kind: 'single', url };
  }
  const defaultPort = kind === 'cluster' ? defaultPorts.cluster : defaultPorts.sentinel;
  const nodes = hosts.split(',').map((text) => parseNode(text, defaultPort));
  const shared = { nodes, tls: scheme === 'rediss', credentials: parseCredentials(credentials) };
  if ((kind === 'cluster') !== (name === '')) throw new TypeError(fix);
  return kind === 'cluster' ? { kind, ...shared } : { kind: 'sentinel', name: decode(name), ...shared };
}

function parseNode(text: string, defaultPort: number): RedisNodes['nodes'][number] {
  const [, host, port] = nodeGrammar.exec(text) ?? [];
  const number = port === undefined ? defaultPort : Number(port);
  if (host === undefined || number < 1 || number > maxPort) throw new TypeError(fix);
  return { host: host.replace(/^\[|\]$/g, ''), port: number };
}

function parseCredentials(text: string): RedisNodes['credentials'] {
  const [username = '', ...password] = text.split(':');
  return {
    ...(username !== '' && { username: decode(username) }),
    ...(password.length > 0 && { password: decode(password.join(':')) }),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TypeError(fix);
  }
}
