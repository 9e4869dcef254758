import { createReadClientAddress } from '../core/http/external-url.ts';
import { createIntrospection, type Introspection } from '../core/introspection/introspection.ts';
import { readAlgorithms, tokenAlgs } from '../core/jose/jws.ts';
import { findAll, type KeySet } from '../core/keys/key-set.ts';
import type { TrustedIssuer } from '../core/resource-server/issuers/trusted-issuer.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import { messageOf } from '../core/shown-text.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import type { TokenCacheStatus } from '../core/token/token-cache.ts';
import { type KeySource, nameKeys, type ServiceKeys } from '../server/keys/open-keys.ts';
import { openResourceServer, type ServerMeans } from '../server/process/open-resource-server.ts';
import { readSecret } from '../server/settings/environment.ts';
import type { Settings } from '../server/settings/settings.ts';
import { createGate, type GateOptions, type IssuerEntry, type ServerRequirements } from './gate.ts';
import type { GateCors } from './match/cors.ts';
import { type RuleIntrospection, type Rules, RulesError } from './match/rules.ts';

interface GateParts extends Pick<GateOptions, 'assertions' | 'mcpMetadata' | 'exchanges'> {
  readonly settings: Settings;
  readonly mode: 'beside' | 'proxy';
  readonly means: ServerMeans;
}

const cacheBounds = { entries: 10_000, bytes: 64 * 1024 * 1024 } as const;
const leastCache = { entries: 200, bytes: 1024 * 1024 } as const;

/** Name of the server for all issuers: no rule has such requirements. */
const allIssuers = 'all';

interface ServerParts extends Pick<GateParts, 'settings' | 'mode' | 'means'> {
  readonly keys: ReadonlyMap<string, ServiceKeys>;
  /** Number of servers that share the limits of cached tokens. */
  readonly share: number;
}

/** Creates the resource servers of a gate. Rules with equal requirements share one, and a reload reuses it. */
export function createGateServers(keySource: KeySource, cors?: GateCors) {
  let servers: ReadonlyMap<string, ResourceServer<RegisteredClaims>> = new Map();
  let keys: ReadonlyMap<string, ServiceKeys> = new Map();
  let introspections: ReadonlyMap<string, OpenedIntrospection> = new Map();
  let isFetching = false;
  /** Counts of closed servers, because a counter must not fall. */
  let gone = { hits: 0, misses: 0 };

  const openKeys = async ({ issuers }: Rules): Promise<ReadonlyMap<string, ServiceKeys>> => {
    const opened = new Map<string, ServiceKeys>();
    for (const trusted of issuers.values()) {
      const { issuer, jwksUri, insecure } = trusted;
      const name = nameKeys(issuer, trusted);
      opened.set(name, keys.get(name) ?? (await keySource.open(issuer, { jwksUri, insecure })));
    }
    return opened;
  };

  return {
    async prepare(rules: Rules, parts: GateParts) {
      const nextIntrospections = openIntrospections(rules, introspections);
      const opened = await openKeys(rules);
      const share = new Set(rules.rules.map(({ issuers, dpop, mode }) => JSON.stringify([issuers, dpop, mode]))).size;
      const used = new Map<string, ResourceServer<RegisteredClaims>>();
      const { settings, mode, means, ...others } = parts;
      const { trustProxy, externalUrl } = settings;
      const common = { settings, mode, means, share, keys: opened };
      const gate = createGate({
        ...{ rules, cors, readClientAddress: createReadClientAddress(trustProxy), ...others },
        ...(mode === 'proxy' && { trustProxy }),
        ...(mode === 'proxy' && externalUrl !== '' && { externalUrl }),
        openServer(requirements) {
          // At most one issuer of a rule has introspection.
          const [own] = requirements.issuers.flatMap(([name]) => nextIntrospections.get(name) ?? []);
          const key = JSON.stringify([requirements, own?.key]);
          const server = used.get(key) ?? servers.get(key) ?? openServer(requirements, common, own?.introspection);
          used.set(key, server);
          return server;
        },
      });
      // For messages of issuers that no rule is about.
      if (means.revocations !== undefined) {
        const issuers = joinEntries(rules, settings, opened);
        used.set(allIssuers, openServer({ issuers, dpop: undefined, proofs: 'ignore' }, common));
      }
      return {
        gate,
        /** Activates this gate, and closes servers that only the gate before used. */
        adopt(): void {
          for (const [key, server] of servers) {
            if (used.has(key)) continue;
            const { hits = 0, misses = 0 } = server.tokenCacheStatus() ?? {};
            gone = { hits: gone.hits + hits, misses: gone.misses + misses };
            server.close();
          }
          for (const [name, { introspection, leaveTo }] of introspections) {
            const next = nextIntrospections.get(name)?.introspection;
            if (next?.issuer === introspection.issuer && next !== introspection) leaveTo(next);
          }
          const added = [...opened].filter(([name]) => !keys.has(name));
          introspections = nextIntrospections;
          servers = used;
          keys = opened;
          keySource.keep(opened);
          if (isFetching) for (const [, { set }] of added) void set.refetch();
        },
      };
    },
    keys: () => keys,
    /** Fetches all keys, and afterwards the keys that a reload adds. */
    fetchKeys(): void {
      isFetching = true;
      for (const { set } of keys.values()) void set.refetch();
    },
    /** Returns the server that trusts every issuer of the rules, for logout tokens. Throws `TypeError` without revocations. */
    all(): ResourceServer<RegisteredClaims> {
      const server = servers.get(allIssuers);
      if (server === undefined) throw new TypeError('The gate has no rules yet.');
      return server;
    },
    tokenCacheStatus(): TokenCacheStatus {
      const all = [...servers.values()].flatMap((server) => server.tokenCacheStatus() ?? []);
      const sum = (name: keyof TokenCacheStatus): number => all.reduce((total, each) => total + each[name], 0);
      return {
        entries: sum('entries'),
        bytes: sum('bytes'),
        hits: gone.hits + sum('hits'),
        misses: gone.misses + sum('misses'),
      };
    },
  };
}

/** Joins the entries of each URL for logout tokens: a key counts with the algorithms of its own entry. */
function joinEntries({ issuers }: Rules, settings: Settings, opened: ServerParts['keys']): IssuerEntry[] {
  const entries = [...issuers.values()];
  return [...new Set(entries.map(({ issuer }) => issuer))].map((issuer): IssuerEntry => {
    const parts = entries.flatMap((entry) => {
      const keys = entry.issuer === issuer ? opened.get(nameKeys(issuer, entry))?.set : undefined;
      const { algorithms = settings.algorithms } = entry.rules ?? {};
      return keys === undefined ? [] : [{ keys, algorithms, names: readAlgorithms(algorithms, tokenAlgs) }];
    });
    const algorithms = [...new Set(parts.flatMap((part) => part.algorithms))];
    return [issuer, { issuer, keys: joinKeys(parts), rules: { audience: issuer, algorithms } }];
  });
}

/** Joins key sets, each for its algorithms. While one of them is not usable, a missing key is not unknown. */
function joinKeys(parts: readonly { readonly keys: KeySet; readonly names: ReadonlySet<string> }[]): KeySet {
  return {
    find: (kid, alg, nth) =>
      parts.flatMap(({ keys, names }) => (names.has(alg) ? findAll(keys, kid, alg) : []))[nth ?? 0],
    get generation() {
      return parts.reduce((sum, { keys }) => sum + keys.generation, 0);
    },
    has: (kid) => parts.some(({ keys }) => keys.has(kid)),
    usable: () => parts.every(({ keys }) => keys.usable()),
    refetch() {
      const fetches = parts.flatMap(({ keys }) => keys.refetch() ?? []);
      return fetches.length === 0 ? undefined : Promise.all(fetches).then(() => undefined);
    },
  };
}

function openServer(
  { issuers: entries, dpop, proofs }: ServerRequirements,
  { settings, mode, means, keys, share }: ServerParts,
  introspection?: Introspection,
): ResourceServer<RegisteredClaims> {
  const issuers = entries.map(([, trusted]): TrustedIssuer => {
    const { issuer, rules } = trusted;
    const own = trusted.keys === undefined ? keys.get(nameKeys(issuer, trusted))?.set : undefined;
    return own === undefined ? trusted : { issuer, keys: own, ...(rules !== undefined && { rules }) };
  });
  const own: ServerMeans = {
    ...means,
    dpop: { ...means.dpop, ...(proofs === 'ignore' && { replay: 'off' }) },
    tokenCache: {
      maxEntries: Math.max(leastCache.entries, Math.floor(cacheBounds.entries / share)),
      maxBytes: Math.max(leastCache.bytes, Math.floor(cacheBounds.bytes / share)),
    },
  };
  return openResourceServer(settings, { from: 'rules', issuers, mode, introspection, dpop }, own);
}

type OpenedIntrospection = ReturnType<typeof openIntrospection>;

/** Opens the introspections by entry, and reuses those whose entry and secret have not changed. */
export function openIntrospections(
  { introspections, issuers }: Rules,
  known: ReadonlyMap<string, OpenedIntrospection>,
): ReadonlyMap<string, OpenedIntrospection> {
  const opened = new Map<string, OpenedIntrospection>();
  for (const [name, entry] of issuers) {
    const own = introspections.get(name);
    if (own === undefined) continue;
    const options = readIntrospectionOptions(entry.issuer, own);
    const key = JSON.stringify([entry, options]);
    const before = known.get(name);
    opened.set(name, before?.key === key ? before : openIntrospection(options, key));
  }
  return opened;
}

/** Reads the options of an introspection, with its secret. Throws `RulesError` if the file is unusable. */
export function readIntrospectionOptions(issuer: string, { clientSecretFile, ...rest }: RuleIntrospection) {
  return { ...rest, issuer, clientSecret: readSecretFile('clientSecretFile', clientSecretFile) };
}

/** Opens an introspection. `key` differs if the entry or the secret differ: a cached response belongs to the entry. */
function openIntrospection(options: Parameters<typeof createIntrospection>[0], key: string) {
  try {
    const own = createIntrospection(options);
    let current: Introspection = own;
    const introspection: Introspection = { ...own, introspect: (...asked) => current.introspect(...asked) };
    return {
      ...{ key, introspection },
      /** Passes later checks, also of open streams, to the introspection of a reload: the secret may have been replaced. */
      leaveTo(next: Introspection): void {
        current = next;
      },
    };
  } catch (cause) {
    throw new RulesError(`The introspection of ${options.issuer} cannot be used: ${messageOf(cause)}`, { cause });
  }
}

/** Reads a file that a member of the rules names. Throws `RulesError` if it is unusable. */
export function readSecretFile(member: string, file: string): string {
  const read = readSecret(file);
  if (typeof read === 'string' && read.trim() !== '') return read.trim();
  throw new RulesError(`${member} ${file} cannot be used. Name a readable file that has only the secret in it.`);
}
