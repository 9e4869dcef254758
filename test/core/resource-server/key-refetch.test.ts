import { expect, it } from 'vitest';
import type { KeySet } from '../../../src/core/keys/key-set.ts';
import { Refused } from '../../../src/core/refused.ts';
import { createRefetchKeys } from '../../../src/core/resource-server/key-refetch.ts';
import type { AccessTokenRules } from '../../../src/core/token/access-token.ts';

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
