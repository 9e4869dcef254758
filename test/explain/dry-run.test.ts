import { describe, expect, it } from 'vitest';
import { checks } from '../../src/core/checks.ts';
import { AccessError, failures, type Reason } from '../../src/core/failures.ts';
import type { Introspection } from '../../src/core/introspection/introspection.ts';
import { allOf, anyOf, checkPolicy } from '../../src/core/policy/checked-policy.ts';
import type { Policy } from '../../src/core/policy/policy.ts';
import { requireOwnServer } from '../../src/core/resource-server/own-server.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createRevocations } from '../../src/core/revocation/revocations.ts';
import { type DryRun, dryRun } from '../../src/explain/dry-run.ts';
import { changeToken } from '../../src/testing/flaws.ts';
import { createTestIssuer, proofFlaws, tokenFlaws } from '../../src/testing/index.ts';
import { issuer as sceneIssuer } from '../adapters/issuer.ts';
import { refusedCalls } from '../adapters/refused-calls.ts';
import { createServers, routes, now as sceneNow } from '../adapters/scene.ts';
import { reasonsOutsideDryRun, reasonsWithoutCheck } from '../support/reasons-without-check.ts';

const now = 1_800_000_000;
const url = 'https://api.test/messages';
const issuer = createTestIssuer({ alg: 'ES256', now: () => now });
const client = issuer.dpopClient();
const { cnf } = JSON.parse(Buffer.from(client.token().split('.')[1] ?? '', 'base64url').toString());

const open = (options = {}) =>
  createResourceServer({
    issuers: [issuer],
    audience: issuer.audience,
    algorithms: ['ES256'],
    now: () => now,
    ...options,
  });

type Headers = Readonly<Record<string, string>>;
const call = (headers: Headers): Request => new Request(url, { headers: { ...headers } });

function run(server: ResourceServer, request: Request, policy: Policy<unknown> = {}, at = now): Promise<DryRun> {
  return dryRun(requireOwnServer('run', server), {
    request,
    policy: checkPolicy(policy),
    connection: undefined,
    now: at,
  });
}

async function reasonOf(server: ResourceServer, request: Request, policy?: Policy<unknown>): Promise<string> {
  const judged = await server.judge(request, policy);
  return judged instanceof AccessError ? judged.reason : 'admitted';
}

/** The dry run says what the judgement says, and its steps come in the order of the list. */
async function expectSame(server: ResourceServer, request: Request, policy?: Policy<unknown>): Promise<DryRun> {
  const dry = await run(server, request, policy);
  expect(dry.reason ?? dry.verdict).toBe(await reasonOf(server, request, policy));
  expect(dry.steps.find(({ verdict }) => verdict === 'fail')?.reason).toBe(dry.reason);
  return dry;
}

const order = new Map(Object.keys(checks).map((id, index) => [id, index]));

function expectInOrder({ steps }: DryRun): void {
  const places = steps.map(({ id }) => order.get(id) ?? Number.NaN);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
}

it('every reason → a check has it, or it is listed as a reason without one', () => {
  const withCheck = new Set<Reason>(Object.values(checks).flatMap(({ reasons }) => reasons));
  const all = Object.keys(failures) as Reason[]; // the keys of the table are the reasons
  expect(all.filter((reason) => withCheck.has(reason) === reasonsWithoutCheck.includes(reason))).toEqual([]);
});

describe('a dry run returns the result of authorize', () => {
  const server = open();

  it('a valid token → admitted, every step passed', async () => {
    const dry = await expectSame(server, call(issuer.headers()));
    expect(dry.steps.map(({ verdict }) => verdict)).not.toContain('fail');
    expect(dry.verdict).toBe('admitted');
    expectInOrder(dry);
  });

  it.each(tokenFlaws)('a token that is %s', async (flaw) => {
    const dry = await expectSame(server, call({ authorization: `Bearer ${issuer.flawed(flaw)}` }));
    expect(dry.reason).toBe(flaw);
    expectInOrder(dry);
  });

  it.each(tokenFlaws)('a token that is %s and also has any other flaw, in every mode', async (flaw) => {
    const servers = [server, open({ dpop: { mode: 'off' } }), open({ dpop: { mode: 'required' } })];
    const facts = { issuer: issuer.issuer, audience: issuer.audience, now, encryptionKid: 'of encryption' };
    const first = changeToken(flaw, facts);
    for (const other of tokenFlaws) {
      const second = changeToken(other, facts);
      const signed = issuer.token({ ...first.claims, ...second.claims }, { ...first.header, ...second.header });
      const once = first.finish?.(signed) ?? signed;
      const token = second.finish?.(once) ?? once;
      for (const each of servers) expectInOrder(await expectSame(each, call({ authorization: `Bearer ${token}` })));
    }
  });

  it.each(proofFlaws)('a proof that is %s', async (flaw) => {
    const dry = await run(server, call(client.headers({ url, flaw })));
    expect(dry.reason).toBe(flaw);
    expectInOrder(dry);
    await expectSame(server, call(client.headers({ url, flaw })));
  });

  it.each(proofFlaws)('a proof that is %s, of a token with any flaw', async (flaw) => {
    for (const other of tokenFlaws) {
      const token = issuer.flawed(other, { cnf });
      await expectSame(server, call(client.headers({ url, flaw, token })));
    }
  });

  it.each(['off', 'allowed', 'required'] as const)('DPoP %s, both schemes, valid and invalid tokens', async (mode) => {
    const each = open({ dpop: { mode } });
    for (const token of [issuer.token(), issuer.flawed('expired')]) {
      await expectSame(each, call({ authorization: `Bearer ${token}` }));
      await expectSame(each, call({ authorization: `DPoP ${token}`, dpop: 'x' }));
      await expectSame(each, call({ authorization: `DPoP ${token}` }));
      await expectSame(each, call({ authorization: `Bearer ${token}`, dpop: 'x' }));
    }
    const { steps } = await run(each, call({ authorization: `DPoP ${issuer.flawed('expired')}`, dpop: 'x' }));
    // The token is looked at, whatever becomes of the scheme.
    expect(steps).toContainEqual(expect.objectContaining({ id: 'exp', verdict: 'fail' }));
  });

  it.each<[string, Policy<unknown>]>([
    ['scopes', { scopes: ['a', 'b'] }],
    ['one of scopes', { anyScope: ['a', 'b'] }],
    ['permissions', { permissions: ['a'] }],
    ['a level', { acr: 'gold' }],
    ['an age', { maxAge: 60 }],
    ['all of several', allOf({ scopes: ['a'] }, { acr: 'gold' })],
    ['any of several', anyOf({ scopes: ['a'] }, { acr: 'gold' })],
    ['any of several within all', allOf(anyOf({ scopes: ['a'] }, { acr: 'gold' }), { maxAge: 60 })],
  ])('a policy with %s', async (_name, policy) => {
    const members = [{}, { scope: 'a b' }, { permissions: ['a'] }, { acr: 'gold' }, { auth_time: now - 61 }];
    for (const one of members) {
      for (const other of members) await expectSame(server, call(issuer.headers({ ...one, ...other })), policy);
    }
  });
});

describe('a call for every reason', () => {
  const servers = createServers(sceneIssuer);

  it.each(
    refusedCalls
      .filter(
        ({ reason, server }) => !reasonsOutsideDryRun.includes(reason) && server !== 'slow' && server !== 'asking',
      )
      .map((each) => [each.reason, each.how ?? '', each] as const),
  )('%s %s', async (reason, _how, { server, path, headers }) => {
    const route = routes.find((each) => each.path === (path ?? `/${server ?? 'usual'}`));
    if (route === undefined) throw new TypeError('There is no such route.');
    const target = `http://here.example${route.path}`;
    const lines = headers(target);
    const request = {
      method: 'GET',
      url: target,
      headers: {
        get: (name: string) => {
          const values = lines.filter(
            (_, index) => index % 2 === 1 && lines[index - 1]?.toLowerCase() === name.toLowerCase(),
          );
          return values.length === 0 ? null : values.join(', ');
        },
      },
    };
    const rules = requireOwnServer('dryRun', servers[route.server]);
    const connection = { remoteAddress: '127.0.0.1' };
    const dry = await dryRun(rules, { request, policy: checkPolicy(route.policy), connection, now: sceneNow() });
    expect(dry.reason).toBe(reason);
    const judged = await servers[route.server].judge(request, route.policy, connection);
    expect(judged).toMatchObject({ reason });
  });
});

describe('undecided steps', () => {
  it('no keys → undecided, and the claims are still compared', async () => {
    const { keys } = createTestIssuer({ alg: 'ES256' });
    const away = { ...keys, find: () => undefined, has: () => false, usable: () => false, refetch: () => undefined };
    const server = open({ issuers: [{ issuer: issuer.issuer, keys: away }] });
    const dry = await run(server, call({ authorization: `Bearer ${issuer.flawed('expired')}` }));
    expect(dry).toMatchObject({ verdict: 'undecided', gathered: { isVerified: false } });
    expect(dry.steps).toContainEqual(expect.objectContaining({ id: 'key', verdict: 'unknown' }));
    expect(dry.steps).toContainEqual(expect.objectContaining({ id: 'exp', verdict: 'fail', reason: 'expired' }));
  });

  it("another issuer → its claims are compared with the only issuer's rules, its signature is not checked", async () => {
    const token = issuer.token({ iss: 'https://other.test/', aud: 'other' });
    const { steps } = await run(open(), call({ authorization: `Bearer ${token}` }));
    expect(steps).toContainEqual(expect.objectContaining({ id: 'key', verdict: 'blocked' }));
    expect(steps).toContainEqual(expect.objectContaining({ id: 'aud', verdict: 'fail' }));
  });

  it('a check that fails for an earlier one of its group → follows', async () => {
    const { steps } = await run(open(), call({ authorization: `Bearer ${issuer.flawed('missing_exp')}` }));
    const ofExp = steps.filter(({ id }) => id.startsWith('exp'));
    expect(ofExp.map(({ id, verdict }) => [id, verdict])).toEqual([
      ['exp_present', 'fail'],
      ['exp_form', 'follows'],
      ['exp', 'follows'],
    ]);
  });
});

describe('checks of the application', () => {
  it("isRevoked and a token with another key's signature → not called", async () => {
    let calls = 0;
    const server = open({ isRevoked: () => ++calls === 0 });
    const forged = call({ authorization: `Bearer ${issuer.flawed('invalid_signature')}` });
    const { steps } = await expectSame(server, forged);
    expect(steps).toContainEqual(expect.objectContaining({ id: 'is_revoked', verdict: 'blocked' }));
    expect(calls).toBe(0);
  });

  it('isRevoked throws → revocation_unknown', async () => {
    const isRevoked = () => {
      throw new Error('down');
    };
    expect((await expectSame(open({ isRevoked }), call(issuer.headers()))).reason).toBe('revocation_unknown');
  });

  it('find throws a refusal → its reason', async () => {
    const find = () => {
      throw new AccessError('insufficient_scope', { scopes: ['a'] });
    };
    const dry = await expectSame(open({ issuers: { find } }), call(issuer.headers()));
    expect(dry.steps.find(({ verdict }) => verdict === 'fail')?.refusal?.scopes).toEqual(['a']);
  });

  it('cutoffs that are not loaded → undecided', async () => {
    const store = { write: async () => undefined, follow: () => undefined, unfollow: () => undefined };
    const revocations = createRevocations({ store, now: () => now });
    const dry = await run(open({ revocations }), call(issuer.headers()));
    expect(dry).toMatchObject({ verdict: 'undecided', reason: undefined });
    expect(dry.steps).toContainEqual(expect.objectContaining({ id: 'revocation', verdict: 'unknown' }));
    revocations.close();
  });

  it.each([
    [undefined, 'undecided'],
    ['ask', 'admitted'],
  ] as const)('an opaque token, introspection %s → %s', async (introspection, verdict) => {
    const claims = { iss: issuer.issuer, aud: issuer.audience, exp: now + 60, iat: now, sub: 'ann', scope: 'a' };
    const endpoint: Introspection = {
      ...{ issuer: issuer.issuer, audience: 'required', maxSeconds: 0 },
      handles: () => true,
      introspect: () => ({ active: true, ...claims }),
      status: () => ({ active: 0, inactive: 0, inFlight: 0, calls: { ok: 0, failed: 0 } }),
      close: () => undefined,
    };
    const request = call({ authorization: 'Bearer opaque' });
    const rules = requireOwnServer('run', open({ introspection: endpoint }));
    const base = { request, connection: undefined, now, introspection };
    expect((await dryRun(rules, { ...base, policy: checkPolicy({ scopes: ['a'] }) })).verdict).toBe(verdict);
    const lacking = await dryRun(rules, { ...base, policy: checkPolicy({ scopes: ['b'] }) });
    expect(lacking.reason).toBe(introspection === 'ask' ? 'insufficient_scope' : undefined);
  });
});

describe('no trace is left', () => {
  it('a valid proof, and tokens → nothing is cached, consumed or counted', async () => {
    const server = open();
    const request = call(client.headers({ url }));
    const before = server.tokenCacheStatus();
    for (let i = 0; i < 3; i++) expect((await run(server, request)).verdict).toBe('admitted');
    expect(server.tokenCacheStatus()).toEqual(before);
    expect(await reasonOf(server, request)).toBe('admitted');
    // It is used up now. A dry run does not tell, and says so.
    const dry = await run(server, request);
    expect(dry.steps.at(-1)).toMatchObject({ id: 'replay', verdict: 'skipped' });
  });

  it('of an unknown key: none is fetched', async () => {
    let fetches = 0;
    const refetch = async () => void fetches++;
    const server = open({ issuers: [{ issuer: issuer.issuer, keys: { ...issuer.keys, refetch } }] });
    const token = issuer.flawed('unknown_kid');
    expect((await run(server, call({ authorization: `Bearer ${token}` }))).reason).toBe('unknown_kid');
    expect(fetches).toBe(0);
  });
});
