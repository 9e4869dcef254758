import { generateKeyPairSync, type JsonWebKey, KeyObject } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createKeySet } from '../../../src/core/keys/key-set.ts';
import type { KeySetEvent, KeySetOptions } from '../../../src/core/keys/key-set-options.ts';
import type { FetchedKeys } from '../../../src/core/keys/loaded-keys.ts';
import type { Fetch } from '../../../src/core/outbound/http-client.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

const issuer = 'https://idp.example.test/';
const jwksUri = `${issuer}.well-known/jwks.json`;
const makeJwk = (kid: string): JsonWebKey & { readonly kid: string } => ({
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
  kid,
  use: 'sig',
});
const first = makeJwk('first');
const second = makeJwk('second');

const open = (options: KeySetOptions) => {
  const keySet = createKeySet(options);
  onTestFinished(keySet.close);
  return keySet;
};
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A provider in memory whose faults and clock are set by hand; the timers are those of the test. */
function startScript(options: Partial<KeySetOptions> = {}) {
  const state = {
    keys: [first] as unknown[],
    maxAge: undefined as number | undefined,
    down: false,
    /** Added to the clock, as if the process had been suspended: timers know nothing of it. */
    suspended: 0,
    fetches: 0,
    gate: undefined as Promise<void> | undefined,
  };
  const events: KeySetEvent[] = [];
  const respond: Fetch = async (url) => {
    if (url === jwksUri) state.fetches++;
    await state.gate;
    if (state.down) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const document = url === jwksUri ? { keys: state.keys } : { issuer, jwks_uri: jwksUri };
    const headers = new Headers(state.maxAge === undefined ? {} : { 'cache-control': `max-age=${state.maxAge}` });
    async function* body() {
      yield Buffer.from(JSON.stringify(document));
    }
    return { status: 200, redirected: false, headers, body: body() };
  };
  const keySet = open({
    issuer,
    fetch: respond,
    now: () => 1000 + performance.now() / 1000 + state.suspended,
    random: () => 1,
    onEvent: (event) => events.push(event),
    ...options,
  });
  return { state, events, keySet, fetch: respond };
}

const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);
const types = (events: readonly KeySetEvent[]): readonly string[] => events.map(({ type }) => type);

describe('a refreshing key set', () => {
  it('fetches nothing before a request, and is not usable', async () => {
    const { state, keySet } = startScript();
    await pass(3600);
    expect([state.fetches, keySet.usable(), keySet.find('first', 'ES256')]).toEqual([0, false, undefined]);
    expect(keySet.has('first')).toBe(false);
    expect(keySet.status()).toEqual({
      usable: false,
      fresh: false,
      ageSeconds: undefined,
      keys: 0,
      lastError: undefined,
      usableSeconds: 0,
      fetches: { ok: 0, failed: 0 },
    });
    expect(keySet.fetched()).toBeUndefined();
  });

  it('is ready after one fetch, and finds its keys by kid and alg', async () => {
    const { state, events, keySet } = startScript();
    await keySet.ready();
    await pass(11); // longer than the throttle
    await keySet.ready();
    expect(state.fetches).toBe(1);
    expect(keySet.find('first', 'ES256')).toBeInstanceOf(KeyObject);
    expect([keySet.find('first', 'RS256'), keySet.find('second', 'ES256')]).toEqual([undefined, undefined]);
    expect(keySet.has('first')).toBe(true);
    expect(events).toEqual([{ type: 'fetched', keys: 1, dropped: 0, seconds: 0 }]);
    expect(keySet.status()).toMatchObject({ usable: true, fresh: true, ageSeconds: 11, keys: 1 });
  });

  it('has one fetch in flight at most', async () => {
    const { state, keySet } = startScript();
    const misses = [keySet.refetch(), keySet.refetch(), keySet.ready()];
    await Promise.all(misses);
    expect(misses[0]).toBe(misses[1]);
    expect(state.fetches).toBe(1);
  });

  it.each<[number | undefined, number]>([
    [undefined, 480],
    [900, 720],
    [0, 48],
    [59, 48],
    [86_400, 2880],
  ])('max-age %s → refreshed in the background after %i s', async (maxAge, seconds) => {
    const { state, keySet } = startScript();
    state.maxAge = maxAge;
    await keySet.ready();
    await pass(seconds - 1);
    expect(state.fetches).toBe(1);
    await pass(1);
    expect(state.fetches).toBe(2);
    await pass(seconds);
    expect(state.fetches).toBe(3);
    expect(keySet.status()).toMatchObject({ fresh: true, fetches: { ok: 3, failed: 0 } });
  });

  it.each([
    [0, 420],
    [0.5, 450],
    [1, 480],
  ])('chance %d → refreshed after %i s: instances that started together come apart', async (chance, seconds) => {
    const { state, keySet } = startScript({ random: () => chance });
    await keySet.ready();
    await pass(seconds - 1);
    expect(state.fetches).toBe(1);
    await pass(1);
    expect(state.fetches).toBe(2);
  });

  it('a withdrawn key is gone with the refresh that shows it, and the generation increases', async () => {
    const { state, keySet } = startScript();
    state.keys = [first, second];
    await keySet.ready();
    expect(keySet.generation).toBe(1);
    state.keys = [second];
    await pass(480);
    expect([keySet.find('first', 'ES256'), keySet.has('first')]).toEqual([undefined, false]);
    expect(keySet.find('second', 'ES256')).toBeInstanceOf(KeyObject);
    expect(keySet.generation).toBe(2);
  });

  it.each<[string, unknown[], number]>([
    ['the same keys', [first], 1],
    ['the same keys and one that is dropped', [first, { kty: 'oct', kid: 'x' }], 1],
    ['one more key', [first, second], 2],
    ['another key under the same kid', [{ ...second, kid: 'first' }], 2],
  ])('a refresh with %s → generation', async (_, keys, generation) => {
    const { state, keySet } = startScript();
    await keySet.ready();
    state.keys = keys;
    await pass(480);
    expect(state.fetches).toBe(2);
    expect(keySet.generation).toBe(generation);
  });

  it('a key that may verify less than before → generation', async () => {
    const { state, keySet } = startScript();
    const jwk = { ...takeRsaKeys().publicKey.export({ format: 'jwk' }), kid: 'r' };
    state.keys = [jwk];
    await keySet.ready();
    expect(keySet.find('r', 'RS256')).toBeInstanceOf(KeyObject);
    state.keys = [{ ...jwk, alg: 'PS256' }];
    await pass(480);
    expect([keySet.find('r', 'RS256'), keySet.generation]).toEqual([undefined, 2]);
  });

  describe('look-up of an unknown kid', () => {
    it('refetches, and finds the new key', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      await pass(10);
      state.keys = [first, second];
      await keySet.refetch();
      expect(keySet.find('second', 'ES256')).toBeInstanceOf(KeyObject);
    });

    it('straight after a fetch, the first and those by the timer → found within the request', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      state.keys = [second];
      await keySet.refetch();
      expect(keySet.find('second', 'ES256')).toBeInstanceOf(KeyObject);
      await pass(480);
      state.keys = [first];
      await keySet.refetch();
      expect(keySet.find('first', 'ES256')).toBeInstanceOf(KeyObject);
    });

    it('refetches three times immediately, then once in 10 s, however many look-ups', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      for (const fetches of [2, 3, 4]) {
        await keySet.refetch();
        expect(state.fetches).toBe(fetches);
      }
      expect(keySet.refetch()).toBeUndefined();
      await pass(9.9);
      expect(keySet.refetch()).toBeUndefined();
      await pass(0.1);
      await keySet.refetch();
      expect(keySet.refetch()).toBeUndefined();
      await pass(29.9);
      for (const fetches of [6, 7]) {
        await keySet.refetch();
        expect(state.fetches).toBe(fetches);
      }
      expect(keySet.refetch()).toBeUndefined();
    });

    it('requests that join a fetch in flight count as one', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      for (const fetches of [2, 3, 4]) {
        await Promise.all([keySet.refetch(), keySet.refetch(), keySet.refetch()]);
        expect(state.fetches).toBe(fetches);
      }
      expect(keySet.refetch()).toBeUndefined();
    });

    it('a refetch puts off the refresh', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      await pass(10);
      await keySet.refetch();
      await pass(479);
      expect(state.fetches).toBe(2);
      await pass(1);
      expect(state.fetches).toBe(3);
    });

    it('does not wait for the backoff, and counts what fails', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      state.down = true;
      await pass(480 + 2 + 4 + 8); // the next retry is 16 s away
      expect(state.fetches).toBe(5);
      for (const fetches of [6, 7, 8]) {
        await keySet.refetch();
        expect(state.fetches).toBe(fetches);
      }
      expect([keySet.refetch(), keySet.usable()]).toEqual([undefined, true]);
    });
  });

  describe('while fetches fail', () => {
    it.each([
      [undefined, 3600],
      [120, 120],
    ])('staleSeconds %s → usable for %i s beyond freshness, then not', async (staleSeconds, seconds) => {
      const { state, keySet } = startScript(staleSeconds === undefined ? {} : { staleSeconds });
      await keySet.ready();
      state.down = true;
      await pass(599);
      expect(keySet.status()).toMatchObject({ usable: true, fresh: true });
      await pass(1);
      expect(keySet.status()).toMatchObject({ usable: true, fresh: false, ageSeconds: 600 });
      await pass(seconds - 1);
      expect(keySet.find('first', 'ES256')).toBeInstanceOf(KeyObject);
      await pass(1);
      expect([keySet.usable(), keySet.find('first', 'ES256')]).toEqual([false, undefined]);
      expect(keySet.status()).toMatchObject({ usable: false, lastError: { kind: 'network' } });
    });

    it('with no stale period is over with its freshness', async () => {
      const { state, keySet } = startScript({ staleSeconds: 0 });
      await keySet.ready();
      state.down = true;
      await pass(599);
      expect(keySet.usable()).toBe(true);
      await pass(1);
      expect(keySet.usable()).toBe(false);
    });

    it.each<[number, readonly number[]]>([
      [1, [2, 4, 8, 16, 30, 30]],
      [0, [1, 2, 4, 8, 15, 15]],
    ])('retries by itself, ever later (chance %i)', async (chance, delays) => {
      const { state, events, keySet } = startScript({ random: () => chance });
      state.down = true;
      await expect(keySet.ready()).rejects.toMatchObject({ kind: 'network' });
      for (const [index, seconds] of delays.entries()) {
        expect(events.at(-1)).toMatchObject({ type: 'failed', attempt: index + 1, retryInSeconds: seconds });
        await pass(seconds - 0.1);
        expect(events).toHaveLength(index + 1);
        await pass(0.1);
      }
      state.down = false;
      await pass(30);
      expect(keySet.status()).toMatchObject({ usable: true, lastError: undefined });
      expect(events.at(-1)).toMatchObject({ type: 'fetched' });
      await pass(480);
      state.down = true;
      await pass(480);
      expect(events.find((event, index) => index > delays.length && event.type === 'failed')).toMatchObject({
        attempt: 1,
      });
    });

    it('with nothing usable, refetches only as the backoff allows', async () => {
      const { state, keySet } = startScript();
      state.down = true;
      await keySet.refetch();
      expect(keySet.refetch()).toBeUndefined();
      await expect(keySet.ready()).rejects.toMatchObject({ kind: 'network' });
      await pass(2);
      expect(state.fetches).toBe(2);
      state.down = false;
      await pass(4);
      expect(keySet.usable()).toBe(true);
    });
  });

  describe('timers that did not run', () => {
    it('is not used past freshness before a refetch was tried', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      state.suspended = 601;
      expect([keySet.usable(), keySet.find('first', 'ES256')]).toEqual([false, undefined]);
      await keySet.refetch();
      expect([keySet.usable(), state.fetches]).toEqual([true, 2]);
    });

    it('is used past freshness once a refetch has failed', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      state.suspended = 601;
      state.down = true;
      await keySet.refetch();
      expect(keySet.status()).toMatchObject({ usable: true, fresh: false });
    });

    it('is not used on the strength of a failure from before', async () => {
      const { state, keySet } = startScript();
      await keySet.ready();
      state.down = true;
      await pass(590); // failed last at 570
      expect(keySet.usable()).toBe(true);
      state.suspended = 39;
      expect(keySet.usable()).toBe(true);
      state.suspended = 40;
      expect(keySet.usable()).toBe(false);
      state.suspended = 1000;
      expect(keySet.usable()).toBe(false);
      await keySet.refetch();
      expect(keySet.usable()).toBe(true);
    });
  });

  describe('with keys that are dropped', () => {
    it('tells each of them, and again only when they change', async () => {
      const { state, events, keySet } = startScript();
      state.keys = [first, { kty: 'oct', kid: 'a' }, { ...second, kid: 7 }];
      await keySet.ready();
      expect(events).toEqual([
        { type: 'dropped', kid: 'a', why: 'symmetric', member: 'kty' },
        { type: 'dropped', kid: undefined, why: 'no_kid', member: 'kid' },
        { type: 'fetched', keys: 1, dropped: 2, seconds: 0 },
      ]);
      await pass(480);
      expect(types(events)).toEqual(['dropped', 'dropped', 'fetched', 'fetched']);
      state.keys = [first, { kty: 'oct', kid: 'b' }];
      await pass(480);
      expect(types(events).slice(4)).toEqual(['dropped', 'fetched']);
    });

    it('alone has failed, and keeps the last good set', async () => {
      const { state, events, keySet } = startScript();
      await keySet.ready();
      state.keys = [{ kty: 'oct', kid: 'a' }];
      await pass(480);
      expect(types(events)).toEqual(['fetched', 'dropped', 'failed']);
      expect(keySet.status()).toMatchObject({ usable: true, keys: 1, lastError: { kind: 'no_usable_keys' } });
      expect(keySet.find('first', 'ES256')).toBeInstanceOf(KeyObject);
      expect(keySet.generation).toBe(1);
    });

    it('among more than 100 is refused as a whole', async () => {
      const { state, keySet } = startScript();
      state.keys = Array.from({ length: 101 }, (_, index) => ({ ...first, kid: `key-${index}` }));
      await expect(keySet.ready()).rejects.toMatchObject({ kind: 'too_many_keys' });
    });
  });

  describe('closed', () => {
    it('refreshes no more, and is usable until it is stale', async () => {
      const { state, events, keySet } = startScript();
      await keySet.ready();
      keySet.close();
      expect(keySet.usable()).toBe(true);
      await pass(7200);
      expect([state.fetches, types(events), keySet.usable()]).toEqual([1, ['fetched'], false]);
      expect(keySet.refetch()).toBeUndefined();
      await expect(keySet.ready()).rejects.toMatchObject({ kind: 'closed' });
    });

    it('in the middle of a fetch ends it without an event, and without a retry', async () => {
      const { state, events, keySet } = startScript();
      state.gate = new Promise(() => undefined);
      const ready = keySet.ready();
      const rejected = expect(ready).rejects.toMatchObject({ kind: 'closed' });
      await pass(0);
      keySet.close();
      await rejected;
      await pass(60);
      expect([events, vi.getTimerCount()]).toEqual([[], 0]);
    });

    it('by its own event sets no timer', async () => {
      const { keySet } = startScript({ onEvent: () => keySet.close() });
      await keySet.ready();
      expect(vi.getTimerCount()).toBe(0);
    });
  });

  it('without a clock → counts the seconds of the process', async () => {
    const { fetch } = startScript();
    const keySet = open({ issuer, fetch });
    await pass(5);
    await keySet.ready();
    await pass(100);
    expect(keySet.status()).toMatchObject({ usable: true, fresh: true, ageSeconds: 100 });
  });

  it('a hook that throws costs nothing', async () => {
    const onEvent = vi.fn(() => {
      throw new Error('The log is full.');
    });
    const { keySet } = startScript({ onEvent });
    await keySet.ready();
    expect(onEvent).toHaveBeenCalledOnce();
    expect(keySet.usable()).toBe(true);
  });

  it('an attempt ends after 3 s in all, discovery after 2 s', async () => {
    const { state, keySet } = startScript();
    state.gate = new Promise(() => undefined);
    const rejected = expect(keySet.ready()).rejects.toMatchObject({ kind: 'timeout' });
    await pass(1.9);
    expect(state.fetches).toBe(0);
    await pass(0.1);
    expect(state.fetches).toBe(1); // the fallback has its turn
    await pass(0.9);
    expect(keySet.status().fetches.failed).toBe(0);
    await pass(0.1);
    expect(keySet.status().fetches.failed).toBe(1);
    await rejected;
  });
});

describe('a key set loaded once', () => {
  it('never fetches again, and never goes stale', async () => {
    const { state, keySet } = startScript({ mode: 'once' });
    await keySet.ready();
    state.down = true;
    await pass(10 * 86_400);
    expect(keySet.find('first', 'ES256')).toBeInstanceOf(KeyObject);
    expect([keySet.refetch(), state.fetches]).toEqual([undefined, 1]);
    expect(keySet.status()).toMatchObject({ usable: true, fresh: true, ageSeconds: 864_000 });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('failed to load → says so, and retries only on request', async () => {
    const { state, events, keySet } = startScript({ mode: 'once' });
    state.down = true;
    await expect(keySet.ready()).rejects.toMatchObject({ kind: 'network' });
    expect(events).toMatchObject([{ type: 'failed', attempt: 1, retryInSeconds: undefined }]);
    await pass(3600);
    expect(state.fetches).toBe(1);
    state.down = false;
    await keySet.ready();
    expect(keySet.usable()).toBe(true);
  });
});

describe('options', () => {
  it.each([-1, 86_401, Number.NaN])('staleSeconds %s → TypeError', (staleSeconds) => {
    const create = () => createKeySet({ issuer, staleSeconds });
    expect(create).toThrow(new TypeError('staleSeconds: write seconds from 0 to 86400'));
  });

  it.each([0, 86_400])('staleSeconds %s is allowed', (staleSeconds) =>
    expect(open({ issuer, staleSeconds }).usable()).toBe(false),
  );

  it.each([
    ['insecure: write true or false', { issuer, insecure: 'true' as unknown as boolean }], // from a program without types
    ['jwksUri: write an https URL without credentials and fragment', { jwksUri: 'ftp://idp.example/', insecure: true }],
    ['issuer: it is not a plain https URL, nor an http one', { issuer: 'ftp://idp.example/', insecure: true }],
  ])('insecure, and still wrong → TypeError: %s', (message, options) =>
    expect(() => createKeySet(options)).toThrow(new TypeError(message)),
  );

  it('an issuer that is not an https URL → TypeError', () =>
    expect(() => createKeySet({ issuer: 'http://idp.example.test/' })).toThrow(TypeError));
});

describe('a key set that starts from keys that were fetched before', () => {
  /** What a set tells so many seconds after its fetch. */
  async function fetchBefore(seconds: number): Promise<FetchedKeys> {
    const { keySet } = startScript();
    await keySet.ready();
    await pass(seconds);
    const fetched = keySet.fetched();
    keySet.close();
    if (fetched === undefined) throw new Error('Nothing was fetched.');
    return fetched;
  }

  it('fresh keys → they are found at once, and replaced by the first fetch', async () => {
    const restored = await fetchBefore(60);
    expect(restored).toMatchObject({ ageSeconds: 60, lifetimeSeconds: 600, published: ['first'] });
    const { state, keySet } = startScript({ restored });
    expect(keySet.find('first', 'ES256')).toBeInstanceOf(KeyObject);
    expect(keySet.has('first')).toBe(true);
    expect(keySet.status()).toMatchObject({ usable: true, fresh: true, ageSeconds: 60, usableSeconds: 540 });
    state.keys = [second];
    await keySet.refetch();
    expect(keySet.find('first', 'ES256')).toBeUndefined();
    expect(keySet.find('second', 'ES256')).toBeInstanceOf(KeyObject);
  });

  it('stale keys → they are used only once a fetch has failed, and no longer than the stale period', async () => {
    const { state, keySet } = startScript({
      restored: { ...(await fetchBefore(0)), ageSeconds: 650 },
      staleSeconds: 100,
    });
    state.down = true;
    expect(keySet.usable()).toBe(false);
    await keySet.refetch();
    expect(keySet.status()).toMatchObject({ usable: true, fresh: false, usableSeconds: 50 });
    await pass(51);
    expect(keySet.usable()).toBe(false);
  });

  it('loaded once → fetched until that succeeds, and then valid for ever', async () => {
    const { state, keySet } = startScript({ mode: 'once', restored: await fetchBefore(10) });
    state.down = true;
    await keySet.refetch();
    await pass(1);
    expect(keySet.find('first', 'ES256')).toBeInstanceOf(KeyObject);
    state.down = false;
    state.keys = [second];
    await pass(60);
    expect(keySet.find('first', 'ES256')).toBeUndefined();
    const { fetches } = state;
    await pass(100_000);
    expect(state.fetches).toBe(fetches);
    expect(keySet.status()).toMatchObject({ usable: true, usableSeconds: Number.POSITIVE_INFINITY });
  });
});
