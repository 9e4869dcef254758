import { expect, it, onTestFinished, vi } from 'vitest';
import { AccessError } from '../../../src/core/failures.ts';
import type { Introspection } from '../../../src/core/introspection/introspection.ts';
import { registerPolicy } from '../../../src/core/policy/checked-policy.ts';
import type { Policy } from '../../../src/core/policy/policy.ts';
import { Refused } from '../../../src/core/refused.ts';
import type { AnyServerOptions } from '../../../src/core/resource-server/options.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { createRevocations } from '../../../src/core/revocation/revocations.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const issuer = createTestIssuer();
const now = (): number => Math.floor(Date.now() / 1000);

function open(options: Partial<Omit<AnyServerOptions, 'issuer'>> = {}) {
  const revocations = createRevocations({ stale: 'refuse' });
  const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, revocations, ...options });
  const decide = async (token: string, policy?: Policy<unknown>): Promise<string> => {
    const request = new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } });
    try {
      await server.authorize(request, policy);
      return 'admitted';
    } catch (error) {
      if (error instanceof AccessError) return error.reason;
      throw error;
    }
  };
  return { revocations, server, decide };
}

const token = (claims: object = {}): string =>
  issuer.token({ sub: 'ann', sid: 's1', client_id: 'app', iat: now() - 10, ...claims });

it('cached token, then a cutoff → revoked_token; a token of a later login → admitted', async () => {
  const { revocations, server, decide } = open();
  const old = token({ iat: now() - 10 });
  for (let i = 0; i < 3; i++) expect(await decide(old)).toBe('admitted');
  expect(server.tokenCacheStatus()?.hits).toBeGreaterThan(0);
  await revocations.revoke({ issuer: issuer.issuer, sub: 'ann', before: now() - 5 });
  expect(await decide(old)).toBe('revoked_token');
  expect(await decide(token({ iat: now() - 4 }))).toBe('admitted');
});

it('the order: lifetime, cutoff, unknown, isRevoked', async () => {
  const asked: unknown[] = [];
  const { revocations, decide } = open({ isRevoked: ({ claims }) => asked.push(claims['jti']) > 0 });
  const long = token({ exp: now() + 90_000 });
  expect(await decide(token({ jti: 'one' }))).toBe('revoked_token');
  expect(await decide(long)).toBe('token_lifetime_too_long');
  const later = performance.now() + 61_000;
  const clock = vi.spyOn(performance, 'now').mockReturnValue(later);
  onTestFinished(() => clock.mockRestore());
  expect(await decide(token())).toBe('revocation_unknown');
  await revocations.revoke({ issuer: issuer.issuer, sub: 'ann' });
  expect(await decide(token())).toBe('revoked_token');
  expect(await decide(long)).toBe('token_lifetime_too_long');
  expect(asked).toEqual(['one']);
});

it('after the claims, before the binding: an expired token, then a bound one without its proof', async () => {
  const { revocations, decide } = open();
  await revocations.revoke({ issuer: issuer.issuer, sub: 'ann' });
  const bound = { cnf: { jkt: 'x'.repeat(43) } };
  expect(await decide(token({ ...bound, exp: now() - 60, iat: now() - 120 }))).toBe('expired');
  expect(await decide(token({ ...bound, exp: now() + 90_000 }))).toBe('token_lifetime_too_long');
  expect(await decide(token(bound))).toBe('revoked_token');
});

it('several servers with one createRevocations() → refused by each', async () => {
  const { revocations, decide } = open();
  const second = open({ revocations });
  await revocations.revoke({ issuer: issuer.issuer, sub: 'ann' });
  expect([await decide(token()), await second.decide(token())]).toEqual(['revoked_token', 'revoked_token']);
});

it.each([[{}], [{ revoke: async () => undefined }]])('revocations that are %j → TypeError', (revocations) =>
  expect(() => open({ revocations } as object)).toThrow('write createRevocations()'),
);

/** Responds as an endpoint would, and records what it is called with. */
function createAnswers(claims: object) {
  const calls: (number | undefined)[] = [];
  let response: object = {
    active: true,
    iss: issuer.issuer,
    aud: issuer.audience,
    sub: 'ann',
    exp: now() + 60,
    ...claims,
  };
  const introspection: Introspection = {
    issuer: issuer.issuer,
    audience: 'required',
    maxSeconds: 60,
    handles: (text) => !text.includes('.'),
    introspect: async (_token, _digest, _client, since) => {
      calls.push(since);
      return 'active' in response && response.active === true ? (response as never) : new Refused('inactive_token'); // a JSON object
    },
    status: () => ({ active: 0, inactive: 0, inFlight: 0, calls: { ok: 0, failed: 0 } }),
    close: () => undefined,
  };
  return { calls, introspection, change: (next: object) => (response = { ...response, ...next }) };
}

it('introspected token without iat, matching cutoff → a response newer than the cutoff decides', async () => {
  const { introspection, calls } = createAnswers({});
  const { revocations, decide } = open({ introspection });
  expect(await decide('opaque')).toBe('admitted');
  expect(calls).toEqual([undefined]);
  await revocations.revoke({ issuer: issuer.issuer, sub: 'ann' });
  expect(await decide('opaque')).toBe('admitted');
  expect(calls.length).toBe(3);
  expect(calls[2]).toBeGreaterThan(0);
});

it('introspected token without iat, a cutoff of its user and then an earlier one of its client → newer than both', async () => {
  const { introspection, calls } = createAnswers({ client_id: 'app' });
  const { revocations, decide } = open({ introspection });
  await revocations.revoke({ issuer: issuer.issuer, sub: 'ann' });
  expect(await decide('opaque')).toBe('admitted');
  await revocations.revoke({ issuer: issuer.issuer, client_id: 'app', before: 1000 });
  expect(await decide('opaque')).toBe('admitted');
  expect(calls[3]).toBeGreaterThan(calls[1] ?? 0);
});

it.each<readonly [string, object, object, readonly [calls: number, decision: string]]>([
  ['nothing changes', {}, {}, [1, 'admitted']],
  ['a cutoff, and the issuer calls it inactive', { cutoff: true }, { active: false }, [2, 'inactive_token']],
  ['a cutoff, and the issuer calls it active', { cutoff: true }, {}, [3, 'admitted']],
  ['a second passes, and the issuer calls it inactive', { seconds: 1 }, { active: false }, [2, 'inactive_token']],
])('introspected token, while the policy waits %s → it is decided again', async (_event, event, next, expected) => {
  const { cutoff, seconds = 0 } = event as { readonly cutoff?: boolean; readonly seconds?: number };
  const { introspection, calls, change } = createAnswers({});
  let later = 0;
  const { revocations, decide } = open({ introspection, now: () => now() + later });
  const policy = registerPolicy({
    scopes: [],
    hasSchema: false,
    made: undefined as never, // no explanation reads it
    async judge() {
      if (cutoff) await revocations.revoke({ issuer: issuer.issuer, sub: 'ann' });
      later = seconds;
      change(next);
      return undefined;
    },
  });
  const decision = await decide('opaque', policy);
  expect([calls.length, decision]).toEqual(expected);
});

it.each([
  ['with iat', { iat: now() - 10 }, { sub: 'ann' }],
  ['without iat, cutoff of its session', { sid: 's1' }, { sid: 's1' }],
])('introspected token %s → the cutoff decides', async (_name, claims, cutoff) => {
  const { revocations, decide } = open({ introspection: createAnswers(claims).introspection });
  await revocations.revoke({ issuer: issuer.issuer, ...cutoff });
  expect(await decide('opaque')).toBe('revoked_token');
});
