import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Introspection } from '../../../src/core/introspection/introspection.ts';
import { endAtExpiry, followAccess } from '../../../src/core/resource-server/access.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { type Cutoff, createRevocations } from '../../../src/core/revocation/revocations.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const issuer = createTestIssuer();
const now = (): number => Date.now() / 1000;
const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);
const hour = 3600;

beforeEach(() => {
  vi.useFakeTimers({ now: 1_900_000_000_000 });
});
afterEach(() => vi.useRealTimers());

async function open(claims: object = {}, introspection?: Introspection) {
  const revocations = createRevocations();
  const server = createResourceServer({
    ...{ issuers: [issuer], audience: issuer.audience, revocations },
    ...(introspection !== undefined && { introspection }),
  });
  const token =
    introspection === undefined
      ? issuer.token({
          sub: 'ann',
          sid: 's1',
          client_id: 'app',
          jti: 'j1',
          iat: Math.floor(Date.now() / 1000) - 10,
          ...claims,
        })
      : 'opaque';
  const headers = { authorization: `Bearer ${token}` };
  const access = await server.authorize(new Request('https://api.test/', { headers }));
  const revoke = (cutoff: Partial<Cutoff>) => revocations.revoke({ issuer: issuer.issuer, ...cutoff });
  return { access, revoke };
}

it.each([
  ['its user', { sub: 'ann' }, true],
  ['its session', { sid: 's1' }, true],
  ['its client', { client_id: 'app' }, true],
  ['its jti', { jti: 'j1' }, true],
  ['its user, before the token', { sub: 'ann', before: 1 }, false],
  ['another user', { sub: 'bob' }, false],
  ['a user of another issuer', { sub: 'ann', issuer: 'https://other.example/' }, false],
])('endAtExpiry, a cutoff of %s → close is called: %j %s', async (_name, cutoff, isCalled) => {
  const { access, revoke } = await open();
  const close = vi.fn();
  const cancel = endAtExpiry(access, close);
  await revoke(cutoff);
  expect(close).not.toHaveBeenCalled();
  await pass(0.001);
  expect(close).toHaveBeenCalledTimes(isCalled ? 1 : 0);
  cancel();
  expect(vi.getTimerCount()).toBe(0);
});

it('azp without client_id, jti that is a number → the cutoffs of their strings', async () => {
  for (const cutoff of [{ client_id: 'spa' }, { jti: '7' }]) {
    const { access, revoke } = await open({ client_id: undefined, azp: 'spa', jti: 7 });
    const close = vi.fn();
    endAtExpiry(access, close);
    await revoke(cutoff);
    await pass(0.001);
    expect(close).toHaveBeenCalledOnce();
  }
});

it('endAtExpiry after the cutoff → called, in a later event-loop iteration', async () => {
  const { access, revoke } = await open();
  await revoke({ sid: 's1' });
  const close = vi.fn();
  endAtExpiry(access, close);
  expect(close).not.toHaveBeenCalled();
  await pass(0.001);
  expect(close).toHaveBeenCalledOnce();
});

it('cancelled between the cutoff and the call, or twice revoked → not called, called once', async () => {
  const { access, revoke } = await open();
  const [cancelled, twice] = [vi.fn(), vi.fn()];
  const cancel = endAtExpiry(access, cancelled);
  endAtExpiry(access, twice);
  await revoke({ sid: 's1' });
  await revoke({ jti: 'j1' });
  cancel();
  await pass(hour * 48);
  expect(cancelled).not.toHaveBeenCalled();
  expect(twice).toHaveBeenCalledOnce();
});

it('until revocation → the expiry ends nothing, a cutoff does', async () => {
  const { access, revoke } = await open();
  const end = vi.fn();
  followAccess(access, { end, until: 'revocation' });
  expect(vi.getTimerCount()).toBe(0);
  await pass(hour * 48);
  expect(end).not.toHaveBeenCalled();
  const { access: other, revoke: revokeOther } = await open();
  followAccess(other, { end, until: 'revocation' });
  await revokeOther({ sub: 'ann' });
  await revoke({ sub: 'bob' });
  await pass(0.001);
  expect(end.mock.calls).toEqual([['revoked']]);
});

it('followAccess of a token that has ended → its refusal; of a value that is not access → undefined', async () => {
  const { access, revoke } = await open();
  const end = vi.fn();
  await revoke({ sid: 's1' });
  expect(followAccess(access, { end, until: 'expiry' })).toMatchObject({ reason: 'revoked_token' });
  const expired = await open({ exp: now() + 10 });
  await pass(60);
  expect(followAccess(expired.access, { end, until: 'expiry' })).toMatchObject({ reason: 'expired' });
  expect(followAccess(expired.access, { end, until: 'revocation' })).toBeTypeOf('function');
  expect(followAccess({ ...access }, { end, until: 'expiry' })).toBeUndefined();
});

it('20,000 streams and a cutoff of all → at most a hundred end in one event-loop iteration, and all end', async () => {
  const { access, revoke } = await open();
  let ended = 0;
  for (let i = 0; i < 20_000; i++) followAccess(access, { until: 'revocation', end: () => ended++ });
  await revoke({ sub: 'ann' });
  expect(ended).toBe(0);
  vi.runOnlyPendingTimers();
  expect(ended).toBe(100);
  await pass(1);
  expect(ended).toBe(20_000);
});

type Response = object | Error;

/** Responds as an endpoint would; counts its calls. */
function createAnswers(first: Response) {
  const answers: { next: Response; calls: number; introspection: Introspection } = {
    next: first,
    calls: 0,
    introspection: {
      ...{ issuer: issuer.issuer, audience: 'required', maxSeconds: 30 },
      handles: () => true,
      introspect: async () => {
        answers.calls++;
        if (answers.next instanceof Error) throw answers.next;
        return { active: true, iss: issuer.issuer, aud: issuer.audience, sub: 'ann', ...answers.next } as never; // a JSON object
      },
      status: () => ({ active: 0, inactive: 0, inFlight: 0, calls: { ok: 0, failed: 0 } }),
      close: () => undefined,
    },
  };
  return answers;
}

it('introspected token → checked each maxSeconds; inactive → revoked at the next check; an endpoint that fails ends nothing', async () => {
  const answers = createAnswers({ exp: now() + hour });
  const { access } = await open({}, answers.introspection);
  const end = vi.fn();
  followAccess(access, { end, until: 'expiry' });
  await pass(29);
  expect(answers.calls).toBe(1);
  await pass(2);
  expect(answers.calls).toBe(2);
  answers.next = new Error('of the endpoint');
  await pass(60);
  expect([answers.calls, end.mock.calls]).toEqual([4, []]);
  answers.next = { exp: now() + hour, aud: 'another' };
  await pass(31);
  expect(end.mock.calls).toEqual([['revoked']]);
  await pass(hour);
  expect(answers.calls).toBe(5);
});

it('introspected token, a clock that is set back → the next check is not put off', async () => {
  const answers = createAnswers({ exp: now() + hour });
  const { access } = await open({}, answers.introspection);
  const end = vi.fn();
  followAccess(access, { end, until: 'expiry' });
  vi.setSystemTime(Date.now() - hour * 1000);
  answers.next = { exp: now() + hour, aud: 'another' };
  await pass(31);
  expect(end.mock.calls).toEqual([['revoked']]);
});

it('introspected token whose expiry moves → the last one counts', async () => {
  const answers = createAnswers({ exp: now() + 40 });
  const { access } = await open({}, answers.introspection);
  const end = vi.fn();
  followAccess(access, { end, until: 'expiry' });
  answers.next = { exp: now() + 100 };
  await pass(90);
  expect(end).not.toHaveBeenCalled();
  await pass(20);
  expect(end.mock.calls).toEqual([['expired']]);
});

it('introspected token without iat and a cutoff of its user → a response after the cutoff decides', async () => {
  const answers = createAnswers({ exp: now() + hour });
  const { access, revoke } = await open({}, answers.introspection);
  const end = vi.fn();
  const stop = followAccess(access, { end, until: 'expiry' });
  await revoke({ sub: 'ann' });
  await pass(0.001);
  expect(end).not.toHaveBeenCalled();
  expect(answers.calls).toBeGreaterThan(1);
  answers.next = { exp: now() + hour, aud: 'another' };
  await pass(1);
  await revoke({ sub: 'ann' });
  await pass(0.001);
  expect(end.mock.calls).toEqual([['revoked']]);
  if (typeof stop === 'function') stop();
});

it('stopped while a check is in flight → nothing ends', async () => {
  const answers = createAnswers({ exp: now() + hour });
  const { access } = await open({}, answers.introspection);
  const end = vi.fn();
  const stop = followAccess(access, { end, until: 'expiry' });
  answers.next = { aud: 'another', exp: now() + hour };
  vi.advanceTimersByTime(30_000);
  if (typeof stop === 'function') stop();
  await pass(hour);
  expect([end.mock.calls, vi.getTimerCount()]).toEqual([[], 0]);
});
