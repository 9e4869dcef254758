import { KeyObject } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { algorithms, parseJws, verifyJws } from '../../../src/core/jose/jws.ts';
import { createKeySet, type ManagedKeySet } from '../../../src/core/keys/key-set.ts';
import type { KeySetEvent, KeySetOptions } from '../../../src/core/keys/key-set-options.ts';
import { type ProviderFault, startTestProvider, type TestProvider } from '../../support/test-provider.ts';

describe('a key set of a provider over TLS', () => {
  let provider: TestProvider;
  let opened: ManagedKeySet[] = [];
  beforeAll(async () => {
    provider = await startTestProvider();
  });
  afterEach(async () => {
    for (const each of opened) each.close();
    opened = [];
    provider.mend();
    await provider.up();
  });
  afterAll(() => provider.close());

  const connect = (options: Partial<KeySetOptions> = {}): ManagedKeySet => {
    const keySet = createKeySet({ issuer: provider.issuer, ca: provider.ca, environment: {}, ...options });
    opened.push(keySet);
    return keySet;
  };

  it('its key verifies its token', async () => {
    const keySet = connect();
    await keySet.ready();
    const jws = parseJws(await provider.sign());
    const key = keySet.find(provider.kid, 'RS256');
    const algorithm = algorithms.get('RS256');
    if (typeof jws === 'string' || key === undefined || algorithm === undefined) throw new Error('Nothing to verify.');
    expect(verifyJws(jws, algorithm, key)).toBe(true);
  });

  it('keys come and go with it', async () => {
    let now = 0;
    const keySet = connect({ now: () => now });
    await keySet.ready();
    const old = provider.kid;
    const fresh = await provider.rotate();
    provider.withdraw(old);
    expect(keySet.has(fresh)).toBe(false);
    now += 10;
    await keySet.refetch();
    expect(keySet.find(fresh, 'RS256')).toBeInstanceOf(KeyObject);
    expect([keySet.has(old), keySet.generation]).toEqual([false, 2]);
  });

  it.each<ProviderFault>(['hang', 'drip', 'reset', 'status_500', 'not_found', 'garbage', 'huge', 'redirect'])(
    'discovery %s → the well-known key set',
    async (fault) => {
      provider.inject(fault, 'discovery');
      const keySet = connect();
      await keySet.ready();
      expect(keySet.find(provider.kid, 'RS256')).toBeInstanceOf(KeyObject);
    },
  );

  it('down at first, then up → ready without a request', async () => {
    await provider.down();
    const events: KeySetEvent[] = [];
    const keySet = connect({ random: () => 0, onEvent: (event) => events.push(event) });
    await expect(keySet.ready()).rejects.toMatchObject({ kind: 'network' });
    await provider.up();
    await vi.waitFor(() => expect(keySet.usable()).toBe(true), { timeout: 10_000 });
    expect(events).toMatchObject([{ type: 'failed' }, { type: 'fetched' }]);
  });

  it('closing leaves no connection open', async () => {
    const keySet = connect();
    await keySet.ready();
    expect(await provider.connections()).toBeGreaterThan(0);
    keySet.close();
    await vi.waitFor(async () => expect(await provider.connections()).toBe(0), 20_000);
  });
});
