import { type Jwks, readJwks } from '../../keys/jwks.ts';
import type { KeySet } from '../../keys/key-set.ts';
import type { KeyOwner } from '../keys/open-keys.ts';
import { collectAlgorithms, type KeyNews, type KeySource, nameKeys } from '../keys/service-keys.ts';
import type { KeysRequest, PrimaryChannel, WorkerChannel } from './channel.ts';

/** Milliseconds for one fetch by the owner, and its response. */
const responseTimeout = 5000;
/** Seconds without another request, after the owner has refused to fetch. */
const throttleSeconds = 1;

/** Sends keys to a worker. The primary process fetches, so that a flood costs the provider as much as one process. */
export async function provideKeys(
  owner: KeyOwner,
  { issuer, place, newerThan }: KeysRequest,
  channel: WorkerChannel,
): Promise<'sent' | 'throttled'> {
  const name = nameKeys(issuer, place);
  const keys = await owner.open(issuer, place);
  // Newer keys, which another worker has requested, need no other fetch.
  const needsFetch = newerThan !== undefined && (owner.news(name)?.fetches ?? 0) <= newerThan;
  const fetch = needsFetch ? keys.set.refetch() : undefined;
  if (needsFetch && fetch === undefined) return 'throttled';
  await fetch;
  const news = owner.news(name);
  // Not in the response: the worker would read it after news that was sent later.
  if (news !== undefined) channel.call('keys', { name, news });
  return 'sent';
}

/** The keys that the primary process fetches, as a worker uses them. A worker has them before its first connection. */
export function followKeys(channel: PrimaryChannel): KeySource {
  const followed = new Map<string, FollowedKeys>();
  channel.provide({ keys: ({ name, news }) => followed.get(name)?.follow(news) });
  return {
    async open(issuer, place = {}) {
      const request = async (newerThan?: number): Promise<boolean> =>
        (await channel.request('keys', responseTimeout, { issuer, place, newerThan })) !== 'sent';
      const keys = createFollowedKeys(request);
      followed.set(nameKeys(issuer, place), keys);
      await request();
      // The owner fetches.
      return { issuer, set: keys.set, algorithms: keys.algorithms, problem: keys.problem, fetch: () => {} };
    },
  };
}

type FollowedKeys = ReturnType<typeof createFollowedKeys>;

/** `fetch` requests keys that are newer than the keys of N fetches. It resolves with true if the owner refuses to fetch now. */
function createFollowedKeys(fetch: (newerThan: number) => Promise<boolean>) {
  let jwks: Jwks | undefined;
  let generation = 0;
  let fetches = 0;
  let usableUntil = Number.NEGATIVE_INFINITY;
  let problem: string | undefined;
  let inFlight: Promise<void> | undefined;
  let quietUntil = Number.NEGATIVE_INFINITY;
  const usable = (): boolean => seconds() < usableUntil;

  const set: KeySet = {
    find(kid, alg) {
      const found = usable() ? jwks?.keys.get(kid) : undefined;
      return found?.algs.has(alg) ? found.key : undefined;
    },
    has: (kid) => jwks?.published.has(kid) ?? false,
    usable,
    refetch() {
      if (inFlight !== undefined || seconds() < quietUntil) return inFlight;
      inFlight = fetch(fetches).then((throttled) => {
        inFlight = undefined;
        if (throttled) quietUntil = seconds() + throttleSeconds;
      });
      return inFlight;
    },
    get generation() {
      return generation;
    },
  };
  return {
    set,
    algorithms: (): ReadonlySet<string> => (jwks === undefined ? new Set() : collectAlgorithms(jwks)),
    problem: () => problem,
    follow(news: KeyNews): void {
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
