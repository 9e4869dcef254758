import type { AnyServerOptions, IssuerWithRecipients } from '../resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../resource-server/resource-server.ts';
import type { TrustedIssuer } from '../resource-server/trusted-issuer.ts';
import { type KeySource, nameKeys, type ServiceKeys } from '../server/keys/service-keys.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import type { TokenCacheStatus } from '../token/token-cache.ts';
import { createGate, type Gate, type ServerOrder } from './gate.ts';
import type { Rules } from './rules/rules.ts';

/** What the resource servers of a gate have in common. */
export type CommonOptions = Omit<AnyServerOptions, 'issuer' | 'issuers' | 'keys' | 'jwksUri' | 'insecure' | 'audience'>;

/** A gate that is ready to take the place of another. */
export interface PreparedGate {
  readonly gate: Gate;
  /** Keys that no gate before had asked for. */
  readonly newKeys: readonly ServiceKeys[];
  /** From now on this gate is in force: what only gates before it used is let go. */
  adopt(): void;
}

/** The resource servers that the rules of a gate ask for. What rules share, and what stays when rules change, is kept. */
export interface GateServers {
  prepare(rules: Rules): Promise<PreparedGate>;
  /** The keys of the gate in force, by issuer and place. */
  keys(): ReadonlyMap<string, ServiceKeys>;
  tokenCacheStatus(): TokenCacheStatus;
}

/** Of all verified tokens that are kept: the servers share them out. */
const cacheBounds = { entries: 10_000, bytes: 64 * 1024 * 1024 } as const;
/** What a server keeps at least. */
const leastCache = { entries: 200, bytes: 1024 * 1024 } as const;

/** Makes the servers; `keySource` opens the keys of their issuers. */
export function createGateServers(common: CommonOptions, keySource: KeySource): GateServers {
  let servers: ReadonlyMap<string, ResourceServer<RegisteredClaims>> = new Map();
  let keys: ReadonlyMap<string, ServiceKeys> = new Map();
  /** Counts of servers that are gone: a counter must not fall. */
  let gone = { hits: 0, misses: 0 };

  const openServer = (
    order: ServerOrder,
    opened: ReadonlyMap<string, ServiceKeys>,
    share: number,
  ): ResourceServer<RegisteredClaims> => {
    const issuers = order.issuers.map((trusted): TrustedIssuer => {
      const { issuer, rules } = trusted;
      const keys = opened.get(nameKeys(issuer, trusted));
      return keys === undefined ? trusted : { issuer, keys, ...(rules !== undefined && { rules }) };
    }) as readonly IssuerWithRecipients[]; // rules with an issuer that has no recipients are not loaded
    return createResourceServer({
      ...common,
      issuers,
      // Each issuer has its own; a server without any answers refusals only, and none with a challenge.
      ...(issuers.length === 0 && { audience: 'none' }),
      dpop: {
        ...common.dpop,
        ...(order.dpop !== undefined && { mode: order.dpop }),
        ...(order.proofs === 'ignore' && { replay: 'off' }),
      },
      tokenCache: {
        maxEntries: Math.max(leastCache.entries, Math.floor(cacheBounds.entries / share)),
        maxBytes: Math.max(leastCache.bytes, Math.floor(cacheBounds.bytes / share)),
      },
    });
  };

  return {
    async prepare(rules) {
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
        openServer(order) {
          const key = JSON.stringify(order);
          const server = used.get(key) ?? servers.get(key) ?? openServer(order, opened, share);
          used.set(key, server);
          return server;
        },
      });
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
          servers = used;
          keys = opened;
        },
      };
    },
    keys: () => keys,
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
