import { type Jwks, readJwks } from '../../keys/jwks.ts';
import { type KeyNews, type KeyPlace, type KeySource, nameKeys, type ServiceKeys } from '../keys/service-keys.ts';
import type { PrimaryChannel } from './replay-ipc.ts';

/** Milliseconds that the owner may take for one fetch, and its answer. */
const answerTimeout = 5000;
/** Seconds without another question, after the owner has said that nothing is fetched now. */
const throttleSeconds = 1;

/** Keys that another process fetches. */
interface FollowedKeys {
  readonly keys: ServiceKeys;
  follow(news: KeyNews): void;
}

/** Which keys are meant. */
interface Asked {
  readonly issuer: string;
  readonly place: KeyPlace;
}

/** The keys that the primary process fetches, seen from a worker. A worker has them before it takes a connection. */
export function followKeys(channel: PrimaryChannel): KeySource {
  const followed = new Map<string, FollowedKeys>();
  const waiting = new Map<number, (throttled: boolean) => void>();
  let nextId = 0;

  channel.onMessage((message) => {
    if (message.type !== 'keys') return;
    if (message.news !== undefined) followed.get(message.name)?.follow(message.news);
    if (message.id !== undefined) waiting.get(message.id)?.(message.throttled);
  });

  /** Settles with whether the owner refuses to fetch now. */
  const ask = (asked: Asked, wish: 'follow' | 'fetch', fetches: number): Promise<boolean> =>
    new Promise((resolve) => {
      const id = nextId++;
      const finish = (throttled: boolean): void => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(throttled);
      };
      const timer = setTimeout(() => finish(true), answerTimeout);
      waiting.set(id, finish);
      channel.send({ type: 'keys', id, ...asked, wish, fetches });
    });

  return {
    async open(issuer, place = {}) {
      const asked = { issuer, place };
      const opened = createFollowedKeys(issuer, (fetches) => ask(asked, 'fetch', fetches));
      followed.set(nameKeys(issuer, place), opened);
      await ask(asked, 'follow', 0);
      return opened.keys;
    },
    close: async () => {},
  };
}

/** `fetch` asks the owner, who is told how many fetches were heard of; it settles with whether the owner refuses to fetch now. */
function createFollowedKeys(issuer: string, fetch: (fetches: number) => Promise<boolean>): FollowedKeys {
  let jwks: Jwks | undefined;
  let generation = 0;
  let fetches = 0;
  let usableUntil = Number.NEGATIVE_INFINITY;
  let problem: string | undefined;
  let asking: Promise<void> | undefined;
  let quietUntil = Number.NEGATIVE_INFINITY;
  const usable = (): boolean => seconds() < usableUntil;

  const refetch = (): Promise<void> | undefined => {
    if (asking !== undefined || seconds() < quietUntil) return asking;
    asking = fetch(fetches).then((throttled) => {
      asking = undefined;
      if (throttled) quietUntil = seconds() + throttleSeconds;
    });
    return asking;
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
    problem: () => problem,
    fetch: () => {}, // its owner does
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

/** Of a clock that never steps back. */
function seconds(): number {
  return performance.now() / 1000;
}
