import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { openBackchannelLogout } from '../../../src/core/revocation/logout/backchannel-logout.ts';
import { createMemoryRevocationStore } from '../../../src/core/revocation/memory-store.ts';
import { createRedisRevocationStore } from '../../../src/core/revocation/redis-store.ts';
import {
  createRevocations,
  type RevocationsOptions,
  readRevocations,
} from '../../../src/core/revocation/revocations.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';
import { needs } from '../../support/programs.ts';
import { startTestRedis } from '../../support/redis.ts';

const issuer = 'https://idp.example/';
/** Time of the provider, in seconds. */
const start = 1_800_000_000;
afterEach(() => void vi.restoreAllMocks());

function open(options: RevocationsOptions) {
  const revocations = createRevocations(options);
  onTestFinished(() => void revocations.close());
  const parts = readRevocations('test', revocations);
  const reasonOf = (claims: object) =>
    parts.check({ iss: issuer, sub: 'ann', exp: start + 600, iat: start - 1, ...claims })?.reason;
  return { revocations, parts, reasonOf };
}

describe.each([
  ['60 s ahead of the provider', 60],
  ['60 s behind the provider', -60],
])('a host %s, clockTolerance 60', (_title, difference) => {
  const now = () => start + difference;

  it('an event → tokens issued before it are refused, and a login after it is admitted', async () => {
    const { parts, reasonOf } = open({ now, clockTolerance: 60 });
    await parts.set([{ issuer, kind: 'sub', value: 'ann', before: start, event: 'account-disabled' }]);
    expect([reasonOf({ iat: start }), reasonOf({ iat: start + 1 })]).toEqual(['revoked_token', undefined]);
  });

  it('a logout token → 200', async () => {
    const provider = createTestIssuer({ now: () => start });
    const revocations = createRevocations({ now, clockTolerance: 60 });
    const server = createResourceServer({
      ...{ issuers: [provider], audience: provider.audience, revocations, now, clockTolerance: 60 },
    });
    const { respond } = openBackchannelLogout(server, { clientIds: ['app'] });
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    const own = { aud: 'app', iat: start, exp: undefined, nbf: undefined, client_id: undefined };
    const token = provider.token({ ...own, jti: 'l1', sub: 'ann', sid: 's1', events }, { typ: 'logout+jwt' });
    const headers = new Headers({ host: 'api.test', 'content-type': 'application/x-www-form-urlencoded' });
    const request = { method: 'POST', url: 'https://api.test/', headers };
    const readBody = async () => `logout_token=${token}`;
    const { status } = await respond({ request, connection: undefined, readBody }, '/backchannel-logout');
    expect([status, revocations.status().cutoffs]).toEqual([200, 1]);
  });
});

describe('clocks of instances and of Redis', needs('redis-server'), () => {
  it.each([
    ['60 s behind', -60],
    ['60 s ahead', 60],
  ])(
    'instances %s of Redis → a cutoff outlives its tokens, also for an instance that starts later',
    async (_title, difference) => {
      const redis = await startTestRedis();
      onTestFinished(async () => void (await redis.stop()));
      const now = () => Date.now() / 1000 + difference;
      const openOne = async () => {
        const store = await createRedisRevocationStore(redis.url);
        const one = open({ store, now, maxTokenLifetime: 10 });
        await one.revocations.ready();
        return one;
      };
      const first = await openOne();
      const at = Math.floor(now());
      const token = { iat: at - 1, exp: at + 9 };
      await first.revocations.revoke({ issuer, sub: 'ann' });
      // The next write removes what has expired by the clock of Redis.
      await first.revocations.revoke({ issuer, sub: 'bob' });
      const later = await openOne();
      expect([first.reasonOf(token), later.reasonOf(token)]).toEqual(['revoked_token', 'revoked_token']);
    },
  );
});

it.each([
  ['refuse', 61, 'revocation_unknown'],
  ['refuse', 59, undefined],
  ['accept', 61, undefined],
] as const)(
  'a store without contact for 60 s: stale %s, %i s → %s; a token with a known cutoff → revoked_token',
  async (stale, seconds, expected) => {
    const { revocations, reasonOf } = open({ store: createMemoryRevocationStore(), stale });
    const now = Math.floor(Date.now() / 1000);
    await revocations.revoke({ issuer, sub: 'eve' });
    const { now: clock } = performance;
    vi.spyOn(performance, 'now').mockImplementation(() => clock.call(performance) + seconds * 1000);
    const token = { iat: now - 60, exp: now + 60 };
    expect(reasonOf(token)).toBe(expected);
    expect(reasonOf({ ...token, sub: 'eve' })).toBe('revoked_token');
  },
);
