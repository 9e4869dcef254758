import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { resumeKeySet } from '../../../src/core/keys/key-set.ts';
import type { KeySetEvent } from '../../../src/core/keys/key-set-options.ts';
import { createKeySetPool } from '../../../src/core/keys/key-set-pool.ts';
import { createStaticKeySet } from '../../../src/core/keys/static-key-set.ts';
import type { Fetch } from '../../../src/core/outbound/http-client.ts';

const makeJwk = (kid: string) => ({
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
  kid,
  use: 'sig',
});
const [first, second] = [makeJwk('first'), makeJwk('second')];

interface Place {
  readonly issuer: string;
  readonly insecure?: boolean;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

/** A pool with providers in memory, and a record of its calls. */
function startPool(maxOpen: number) {
  const state = { keys: [first] as object[], down: '', gate: undefined as Promise<void> | undefined };
  const fetched: string[] = [];
  const opened: string[] = [];
  const closed: string[] = [];
  const events: KeySetEvent[] = [];
  const fetch: Fetch = async (url) => {
    fetched.push(url);
    await state.gate;
    const { origin, pathname } = new URL(url);
    const isDiscovery = pathname !== '/keys';
    if (state.down === 'all' || (isDiscovery && state.down === 'discovery')) throw new Error('connection refused');
    const document = isDiscovery ? { issuer: `${origin}/`, jwks_uri: `${origin}/keys` } : { keys: state.keys };
    return new Response(JSON.stringify(document));
  };
  const pool = createKeySetPool<Place>({
    maxOpen,
    open: (source, saved) => {
      opened.push(source.issuer);
      const options = { ...source, fetch, random: () => 1, onEvent: (event: KeySetEvent) => events.push(event) };
      const keys = resumeKeySet(options, saved);
      return {
        ...keys,
        get generation() {
          return keys.generation;
        },
        close: () => {
          closed.push(source.issuer);
          keys.close();
        },
      };
    },
  });
  onTestFinished(() => pool.close());
  const nameOf = (index: number | string): string => `https://tenant-${index}.test/`;
  const keysOf = (index: number | string) => pool.keysOf(nameOf(index), { issuer: nameOf(index) });
  /** As a request does whose token names the issuer: looks the key up, fetches, looks it up again. */
  const look = async (index: number | string, kid = 'first'): Promise<boolean> => {
    const keys = keysOf(index);
    if (keys.find(kid, 'ES256') !== undefined) return true;
    await keys.refetch();
    return keys.find(kid, 'ES256') !== undefined;
  };
  const verify = async (index: number | string): Promise<void> => {
    expect(await look(index)).toBe(true);
    pool.confirm(keysOf(index));
  };
  /** Closes what is open in a pool of one. */
  const closeAll = () => look('other-1');
  return { state, pool, keysOf, look, verify, nameOf, fetched, opened, closed, events, closeAll };
}

describe('open key sets', () => {
  it('key set that is not used → not opened', () => {
    const { keysOf, opened } = startPool(2);
    for (let index = 0; index < 10; index++) keysOf(index);
    expect(opened).toEqual([]);
  });

  it('more than maxOpen → the key set idle for the longest time is closed, and continues with its keys without a fetch', async () => {
    const { look, keysOf, closed, fetched, nameOf, state } = startPool(3);
    for (const index of [0, 1, 2, 0, 3]) expect(await look(index)).toBe(true);
    expect(closed).toEqual([nameOf(1)]);
    expect(fetched).toHaveLength(8);
    state.down = 'all';
    expect([keysOf(1).usable(), keysOf(1).has('first'), await look(1)]).toEqual([true, true, true]);
    expect(fetched).toHaveLength(8);
    expect(closed).toEqual([1, 2].map(nameOf));
  });

  it.each([1, 2, 100])('maxOpen %i, 50 first requests at once → each gets its key', async (maxOpen) => {
    const { look, opened, fetched } = startPool(maxOpen);
    const places = Array.from({ length: 50 }, (_, index) => index);
    // Twice for each place: both wait for one fetch.
    const looks = await Promise.all([...places, ...places].map((index) => look(index)));
    expect(looks).toEqual(looks.map(() => true));
    expect(fetched).toHaveLength(100);
    expect(new Set(opened).size).toBe(50);
  });

  it('fetch that a request waits for → the key set stays open until then', async () => {
    const { state, look, verify, closed, nameOf } = startPool(2);
    let release = (): void => undefined;
    state.gate = new Promise((resolve) => {
      release = resolve;
    });
    const waiting = look('slow');
    await pass(0);
    state.gate = undefined;
    for (let index = 0; index < 10; index++) await verify(index);
    expect(closed).not.toContain(nameOf('slow'));
    release();
    expect(await waiting).toBe(true);
  });
});

describe('key sets that have verified a token', () => {
  it('names in tokens that are not valid → take a quarter of maxOpen at most, and of the saved keys nothing', async () => {
    const { look, verify, closed, fetched, nameOf, state } = startPool(8);
    const valid = Array.from({ length: 8 }, (_, index) => index);
    for (const index of valid) await verify(index);
    // More than is kept of all closed key sets.
    state.keys = [{ ...first, note: 'x'.repeat(220_000) }];
    for (let index = 0; index < 320; index++) await look(`named-${index}`);
    expect(closed.filter((name) => valid.map(nameOf).includes(name))).toEqual([nameOf(0), nameOf(1)]);
    const before = fetched.length;
    for (const index of valid) await verify(index);
    expect(fetched).toHaveLength(before);
  });

  it('confirmed while a request waits for its fetch → kept before those that are not', async () => {
    const { look, pool, keysOf, closed, nameOf } = startPool(4);
    await look('a');
    const rotated = look('a', 'unknown');
    pool.confirm(keysOf('a'));
    expect(await rotated).toBe(false);
    for (let index = 0; index < 9; index++) await look(index);
    expect(closed).not.toContain(nameOf('a'));
  });

  it('keys that are not open, or of another owner → nothing happens', async () => {
    const { pool, keysOf, opened } = startPool(1);
    pool.confirm(keysOf('a'));
    pool.confirm(createStaticKeySet({ keys: [first] }));
    expect(opened).toEqual([]);
  });
});

describe('a key set that was closed and is opened again', () => {
  it('generation → greater than before, so that each verified token is compared with the keys again', async () => {
    const { verify, keysOf, state, look, closeAll } = startPool(1);
    await verify('a');
    const before = keysOf('a').generation;
    await closeAll();
    const after = keysOf('a').generation;
    expect(after).toBeGreaterThan(before);
    state.keys = [second];
    expect(await look('a', 'second')).toBe(true);
    expect(keysOf('a').generation).toBeGreaterThan(after);
    expect(keysOf('a').find('first', 'ES256')).toBeUndefined();
  });

  it('unknown kid → no more fetches than if it had stayed open', async () => {
    const { look, fetched, nameOf, closeAll } = startPool(1);
    await look('a');
    for (let count = 0; count < 9; count++) {
      expect(await look('a', 'unknown')).toBe(false);
      await closeAll();
    }
    // The first one, and three for unknown keys.
    expect(fetched.filter((url) => url === `${nameOf('a')}keys`)).toHaveLength(4);
  });

  it('provider that is down → no more attempts than the backoff allows', async () => {
    const { look, fetched, nameOf, state, closeAll } = startPool(1);
    state.down = 'all';
    for (let count = 0; count < 5; count++) {
      expect(await look('a')).toBe(false);
      await closeAll();
    }
    const attempts = () => fetched.filter((url) => url.startsWith(nameOf('a')) && !url.endsWith('jwks.json')).length;
    expect(attempts()).toBe(1);
    state.down = '';
    await pass(3);
    expect(await look('a')).toBe(true);
  });

  it.each([
    [599, true],
    [600 + 3599, true],
    [600 + 3601, false],
  ])('%i s after the fetch, provider down → usable: %s', async (seconds, isUsable) => {
    const { look, state, closeAll } = startPool(1);
    await look('a');
    await closeAll();
    state.down = 'all';
    await pass(seconds);
    expect(await look('a')).toBe(isUsable);
  });

  it('refresh that became due → made when the key set is used', async () => {
    const { look, state, keysOf, closeAll } = startPool(1);
    await look('a');
    await closeAll();
    state.keys = [second];
    await pass(500);
    expect(await look('a')).toBe(true);
    await pass(1);
    expect(keysOf('a').find('first', 'ES256')).toBeUndefined();
    expect(keysOf('a').find('second', 'ES256')).toBeDefined();
  });

  it('discovery that fails → the jwks_uri of before', async () => {
    const { look, state, closeAll } = startPool(1);
    await look('a');
    await closeAll();
    state.down = 'discovery';
    state.keys = [second];
    expect(await look('a', 'second')).toBe(true);
  });

  it('events of dropped keys and of insecure → once', async () => {
    const { pool, events, state, closeAll } = startPool(1);
    state.keys = [first, { kty: 'oct', k: 'AA', kid: 'secret' }];
    const issuer = 'http://plain.test/';
    for (let count = 0; count < 3; count++) {
      await pool.keysOf(issuer, { issuer, insecure: true }).refetch();
      state.keys = [...state.keys];
      await closeAll();
    }
    const types = events.map(({ type }) => type);
    expect(types.filter((type) => type === 'insecure')).toHaveLength(1);
    expect(events.filter((event) => event.type === 'dropped')).toHaveLength(2); // one for each of two issuers
  });
});

describe('close()', () => {
  it('ends fetches in flight and all that is open; keys that are loaded are found, and nothing is fetched again', async () => {
    const { pool, look, verify, fetched, state, closed, nameOf } = startPool(4);
    await look('a');
    await verify('b');
    state.gate = new Promise(() => undefined);
    const waiting = look('slow');
    await pass(0);
    pool.close();
    expect(await waiting).toBe(false);
    expect(closed.toSorted()).toEqual(['a', 'b', 'slow'].map(nameOf).toSorted());
    const before = fetched.length;
    expect([await look('a'), await look('new')]).toEqual([true, false]);
    await pass(3600);
    expect(fetched).toHaveLength(before);
  });
});
