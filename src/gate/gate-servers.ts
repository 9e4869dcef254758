import type { AnyServerOptions, IssuerWithRecipients } from '../resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../resource-server/resource-server.ts';
import type { TrustedIssuer } from '../resource-server/trusted-issuer.ts';
import { type KeySource, nameKeys, type ServiceKeys } from '../server/keys/service-keys.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import type { TokenCacheStatus } from '../token/token-cache.ts';
import type { GateCors } from './cors.ts';
import { createGate, type Gate, type GateOptions, type ServerRequirements } from './gate.ts';
import { createIntrospections } from './gate-introspections.ts';
import type { Rules } from './rules/rules.ts';

export type CommonOptions = Omit<AnyServerOptions, 'issuer' | 'issuers' | 'keys' | 'jwksUri' | 'insecure' | 'audience'>;

export interface PreparedGate {
  readonly gate: Gate;
  readonly newKeys: readonly ServiceKeys[];
  /** Activates this gate, and closes servers that only the gate before used. */
  adopt(): void;
}

export type GateParts = Pick<GateOptions, 'assertions' | 'mcpMetadata'>;

/** The resource servers of a gate. Rules with equal requirements share one, and a reload reuses it. */
export interface GateServers {
  prepare(rules: Rules, common: CommonOptions, parts?: GateParts): Promise<PreparedGate>;
  keys(): ReadonlyMap<string, ServiceKeys>;
  /** The server that trusts every issuer of the rules, for logout tokens. Throws `TypeError` without revocations. */
  all(): ResourceServer<RegisteredClaims>;
  tokenCacheStatus(): TokenCacheStatus;
}

const cacheBounds = { entries: 10_000, bytes: 64 * 1024 * 1024 } as const;
const leastCache = { entries: 200, bytes: 1024 * 1024 } as const;

/** Name of the server for all issuers: no rule has such requirements. */
const allIssuers = 'all';

interface ServerParts {
  readonly common: CommonOptions;
  /** Number of servers that share the limits of cached tokens. */
  readonly share: number;
  readonly introspection: Pick<AnyServerOptions, 'introspection'>;
}

export function createGateServers(keySource: KeySource, cors?: GateCors): GateServers {
  const introspections = createIntrospections();
  let servers: ReadonlyMap<string, ResourceServer<RegisteredClaims>> = new Map();
  let keys: ReadonlyMap<string, ServiceKeys> = new Map();
  /** Counts of closed servers, because a counter must not fall. */
  let gone = { hits: 0, misses: 0 };

  const openServer = (
    requirements: ServerRequirements,
    opened: ReadonlyMap<string, ServiceKeys>,
    { common, share, introspection }: ServerParts,
  ): ResourceServer<RegisteredClaims> => {
    const issuers = requirements.issuers.map((trusted): TrustedIssuer => {
      const { issuer, rules } = trusted;
      const keys = opened.get(nameKeys(issuer, trusted));
      return keys === undefined ? trusted : { issuer, keys, ...(rules !== undefined && { rules }) };
    }) as readonly IssuerWithRecipients[]; // rules with an issuer without an audience are not loaded
    return createResourceServer({
      ...common,
      issuers,
      ...introspection,
      // Each issuer has its own audience. A server without issuers only writes refusals without a challenge.
      ...(issuers.length === 0 && { audience: 'none' }),
      dpop: {
        ...common.dpop,
        ...(requirements.dpop !== undefined && { mode: requirements.dpop }),
        ...(requirements.proofs === 'ignore' && { replay: 'off' }),
      },
      tokenCache: {
        maxEntries: Math.max(leastCache.entries, Math.floor(cacheBounds.entries / share)),
        maxBytes: Math.max(leastCache.bytes, Math.floor(cacheBounds.bytes / share)),
      },
    });
  };

  return {
    async prepare(rules, common, parts = {}) {
      const preparedIntrospections = introspections.prepare(rules.introspections);
      const opened = new Map<string, ServiceKeys>();
      for (const trusted of rules.issuers.values()) {
        const { issuer, jwksUri, insecure } = trusted;
        const name = nameKeys(issuer, trusted);
        if (opened.has(name)) continue;
        opened.set(name, keys.get(name) ?? (await keySource.open(issuer, { jwksUri, insecure })));
      }
      const share = new Set(rules.rules.map(({ issuers, dpop, mode }) => JSON.stringify([issuers, dpop, mode]))).size;
      const used = new Map<string, ResourceServer<RegisteredClaims>>();
      const gate = createGate({
        rules,
        ...(common.trustProxy !== undefined && { trustProxy: common.trustProxy }),
        cors,
        ...parts,
        ...(common.externalUrl !== undefined && { externalUrl: common.externalUrl }),
        openServer(requirements) {
          const key = JSON.stringify([requirements, preparedIntrospections.keyFor(requirements.issuers)]);
          const server =
            used.get(key) ??
            servers.get(key) ??
            openServer(requirements, opened, {
              ...{ common, share, introspection: preparedIntrospections.optionFor(requirements.issuers) },
            });
          used.set(key, server);
          return server;
        },
      });
      const oneForEach = new Map([...rules.issuers.values()].map((trusted) => [trusted.issuer, trusted]));
      const all = { issuers: [...oneForEach.values()], dpop: undefined, proofs: 'ignore' } as const;
      // For messages of issuers that no rule is about.
      if (common.revocations !== undefined) {
        used.set(allIssuers, openServer(all, opened, { common, share, introspection: {} }));
      }
      const before = keys;
      return {
        gate,
        newKeys: [...opened].flatMap(([name, each]) => (before.has(name) ? [] : [each])),
        adopt() {
          for (const [key, server] of servers) {
            const { hits, misses } = server.tokenCacheStatus() ?? { hits: 0, misses: 0 };
            if (used.has(key)) continue;
            gone = { hits: gone.hits + hits, misses: gone.misses + misses };
            server.close();
          }
          preparedIntrospections.adopt();
          servers = used;
          keys = opened;
        },
      };
    },
    keys: () => keys,
    all() {
      const server = servers.get(allIssuers);
      if (server === undefined) throw new TypeError('The gate has no rules yet.');
      return server;
    },
    tokenCacheStatus: () =>
      sum(
        [...servers.values()].flatMap((server) => server.tokenCacheStatus() ?? []),
        gone,
      ),
  };
}

function sum(all: readonly TokenCacheStatus[], gone: Pick<TokenCacheStatus, 'hits' | 'misses'>): TokenCacheStatus {
  const add = (read: (status: TokenCacheStatus) => number): number =>
    all.reduce((total, each) => total + read(each), 0);
  return {
    entries: add(({ entries }) => entries),
    bytes: add(({ bytes }) => bytes),
    hits: gone.hits + add(({ hits }) => hits),
    misses: gone.misses + add(({ misses }) => misses),
  };
}
