import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { signCompact } from '../../../src/core/jose/sign.ts';
import type { KeySet } from '../../../src/core/keys/key-set.ts';
import { Refused } from '../../../src/core/refused.ts';
import { createRefetchKeys } from '../../../src/core/resource-server/key-refetch.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import type { AccessTokenRules } from '../../../src/core/token/access-token.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

const issuer = 'https://idp.example/';

function open() {
  const clock = { seconds: 1000 };
  const fetches: (() => void)[] = [];
  const keys = { refetch: () => new Promise<void>((resolve) => fetches.push(resolve)) } as unknown as KeySet; // the part in use
  const trusted = { issuers: new Map([[issuer, { keys }]]) } as unknown as AccessTokenRules; // the part in use
  const refetch = createRefetchKeys(
    (_request, connection) => connection?.remoteAddress,
    () => clock.seconds,
  );
  const request = new Request('https://api.example/');
  return {
    clock,
    fetches,
    ask: (remoteAddress: string | undefined, reason: 'unknown_kid' | 'keys_unavailable' | 'expired' = 'unknown_kid') =>
      refetch(new Refused(reason, { context: { issuer } }), trusted, { request, connection: { remoteAddress } }),
  };
}

it('one client with unknown keys → one fetch in 10 s; another client has its own', async () => {
  const { clock, fetches, ask } = open();
  const first = ask('2001:db8::1');
  fetches[0]?.();
  await first;
  expect(ask('2001:db8::1')).toBeUndefined();
  expect(ask('2001:db8::2')).toBeUndefined();
  const other = ask('2001:db8:0:1::1');
  fetches[1]?.();
  await other;
  clock.seconds += 10;
  expect(ask('2001:db8::2')).toBeInstanceOf(Promise);
  expect(fetches).toHaveLength(3);
});

it('a clock that is set back → the client waits no longer', async () => {
  const { clock, fetches, ask } = open();
  const first = ask('192.0.2.1');
  fetches[0]?.();
  await first;
  clock.seconds -= 3600;
  expect(ask('192.0.2.1')).toBeInstanceOf(Promise);
});

it('a fetch in flight → joined by every client, the one that caused it too', () => {
  const { fetches, ask } = open();
  const first = ask('192.0.2.1');
  expect(ask('192.0.2.1')).toBe(first);
  expect(ask('192.0.2.2')).toBe(first);
  expect(fetches).toHaveLength(1);
});

it.each([
  ['no keys at all', '192.0.2.1', 'keys_unavailable'],
  ['a client without an address', undefined, 'unknown_kid'],
] as const)('%s → only the limit of the key set', async (_name, address, reason) => {
  const { fetches, ask } = open();
  for (let i = 0; i < 3; i++) {
    const fetched = ask(address, reason);
    fetches[i]?.();
    await fetched;
  }
  expect(fetches).toHaveLength(3);
});

it('another reason → no fetch', () => {
  const { fetches, ask } = open();
  expect(ask('192.0.2.1', 'expired')).toBeUndefined();
  expect(fetches).toHaveLength(0);
});

describe('several keys with one kid', () => {
  const pairs = Array.from({ length: 5 }, () => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
  const rsa = takeRsaKeys();
  const publish = (key: KeyObject, more: object = {}) => ({ ...key.export({ format: 'jwk' }), kid: 'a', ...more });
  const ec = (...indexes: number[]) => indexes.map((index) => publish(must(pairs[index]).publicKey));
  const must = <T>(value: T | undefined): T => value ?? expect.unreachable();

  function open(...published: object[]) {
    const state = { keys: published, seconds: 1_000_000_000 };
    let monotonic = 0;
    const server = createResourceServer({
      ...{ issuer, audience: 'api', jwksUri: `${issuer}keys`, algorithms: ['RS256', 'ES256'] },
      fetch: async () => Response.json({ keys: state.keys }),
      now: () => state.seconds,
    });
    onTestFinished(server.close);
    const judge = async (alg: string, privateKey: KeyObject) => {
      const { seconds: iat } = state;
      const claims = { iss: issuer, aud: 'api', sub: 'user', iat, exp: iat + 3600, jti: `${monotonic++ >> 1}` };
      const headers = new Headers({
        authorization: `Bearer ${signCompact({ alg, kid: 'a' }, claims, { alg, privateKey })}`,
      });
      const outcome = await server.judge({ method: 'GET', url: 'https://api.example/', headers });
      return 'reason' in outcome ? outcome.reason : 'admitted';
    };
    return { state, judge, byEc: (index: number) => judge('ES256', must(pairs[index]).privateKey) };
  }

  it.each([
    ['RS512', 'RS256'],
    ['RS256', 'RS512'],
  ])('one for %s, then one for %s → a token of RS256 is admitted', async (...algs) => {
    const { judge } = open(
      ...algs.map((alg) => publish(alg === 'RS256' ? rsa.publicKey : takeRsaKeys().publicKey, { alg })),
    );
    expect(await judge('RS256', rsa.privateKey)).toBe('admitted');
  });

  it('five that fit → a token of each of the first four is admitted', async () => {
    const { byEc } = open(...ec(0, 1, 2, 3, 4));
    const seen: string[] = [];
    for (const index of [0, 1, 2, 3, 4]) seen.push(await byEc(index));
    expect(seen).toEqual(['admitted', 'admitted', 'admitted', 'admitted', 'invalid_signature']);
  });

  it('none that fits the algorithm → the keys are fetched again', async () => {
    const { state, judge, byEc } = open(...ec(0));
    expect(await byEc(0)).toBe('admitted');
    state.keys = [...ec(0), publish(rsa.publicKey, { alg: 'RS512' })];
    expect(await judge('RS256', rsa.privateKey)).toBe('key_not_usable');
    state.keys = [...ec(0), publish(rsa.publicKey, { alg: 'RS512' }), publish(rsa.publicKey, { alg: 'RS256' })];
    expect(await judge('RS256', rsa.privateKey)).toBe('admitted');
  });
});
