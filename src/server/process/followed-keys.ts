import { type Jwks, readJwks } from '../../keys/jwks.ts';
import { collectAlgorithms, type KeyNews, type KeySource, nameKeys, type ServiceKeys } from '../keys/service-keys.ts';
import { createPendingRequests } from './messages.ts';
import type { PrimaryChannel } from './replay-ipc.ts';

/** Milliseconds for one fetch by the owner, and its response. */
const responseTimeout = 5000;
/** Seconds without another request, after the owner has refused to fetch. */
const throttleSeconds = 1;

interface FollowedKeys {
  readonly keys: ServiceKeys;
  follow(news: KeyNews): void;
}

/** The keys that the primary process fetches, seen from a worker. A worker has them before its first connection. */
export function followKeys(channel: PrimaryChannel): KeySource {
  const followed = new Map<string, FollowedKeys>();
  const pending = createPendingRequests<boolean>(responseTimeout);

  channel.onMessage((message) => {
    if (message.type !== 'keys') return;
    if (message.news !== undefined) followed.get(message.name)?.follow(message.news);
    if (message.id !== undefined) pending.settle(message.id, message.throttled);
  });

  return {
    async open(issuer, place = {}) {
      /** Resolves with true if the owner refuses to fetch now. */
      const request = async (action: 'follow' | 'fetch', fetches: number): Promise<boolean> =>
        (await pending.request((id) => channel.send({ type: 'keys', id, issuer, place, action, fetches }))) ?? true;
      const opened = createFollowedKeys(issuer, (fetches) => request('fetch', fetches));
      followed.set(nameKeys(issuer, place), opened);
      await request('follow', 0);
      return opened.keys;
    },
    close: async () => {},
  };
}

/** `fetch` requests keys that are newer than the keys of N fetches. It resolves with true if the owner refuses to fetch now. */
function createFollowedKeys(issuer: string, fetch: (fetches: number) => Promise<boolean>): FollowedKeys {
  let jwks: Jwks | undefined;
  let generation = 0;
  let fetches = 0;
  let usableUntil = Number.NEGATIVE_INFINITY;
  let problem: string | undefined;
  let inFlight: Promise<void> | undefined;
  let quietUntil = Number.NEGATIVE_INFINITY;
  const usable = (): boolean => seconds() < usableUntil;

  const refetch = (): Promise<void> | undefined => {
    if (inFlight !== undefined || seconds() < quietUntil) return inFlight;
    inFlight = fetch(fetches).then((throttled) => {
      inFlight = undefined;
      if (throttled) quietUntil = seconds() + throttleSeconds;
    });
    return inFlight;
  };

  const keys: ServiceKeys = {
    issuer,
    find(kid, alg) {
      const found = usable() ? jwks?.keys.get(kid) : undefined;
      return found?.algs.has(alg) ? found.key : undefined;
    },
    has: (kid) => jwks?.published.has(kid) ?? false,
    usable,
    refetch,
    get generation() {
      return generation;
    },
    algorithms: () => (jwks === undefined ? new Set() : collectAlgorithms(jwks)),
    problem: () => problem,
    fetch: () => {}, // the owner fetches
  };
  return {
    keys,
    follow(news) {
      if (news.fetched !== undefined) {
        const { keys, published } = news.fetched;
        jwks = { ...readJwks({ keys }), published: new Set(published) };
      }
      generation = news.generation;
      fetches = news.fetches;
      usableUntil = seconds() + news.usableSeconds;
      problem = news.problem;
    },
  };
}

function seconds(): number {
  return performance.now() / 1000;
}
