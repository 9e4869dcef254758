import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { createNonces } from '../../../src/core/dpop/nonce.ts';
import type { ReplayStore } from '../../../src/core/dpop/replay.ts';
import { AccessError, failures, type Reason } from '../../../src/core/failures.ts';
import { createKeySet, type KeySet } from '../../../src/core/keys/key-set.ts';
import { createStaticKeySet } from '../../../src/core/keys/static-key-set.ts';
import type { Fetch } from '../../../src/core/outbound/http-client.ts';
import { ProviderError } from '../../../src/core/outbound/provider-error.ts';
import type { Policy } from '../../../src/core/policy/policy.ts';
import type { ErrorBodyFormat } from '../../../src/core/refusal/error-body.ts';
import { explainRefusals } from '../../../src/core/resource-server/events.ts';
import type { Subject } from '../../../src/core/resource-server/issuers/token-rules.ts';
import type { ResourceServerEvent, ResourceServerOptions } from '../../../src/core/resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../../src/core/token/claims.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';
import { bearer, judge } from '../../testing/judge.ts';

const first = createTestIssuer({ issuer: 'https://first.example/', alg: 'ES256' });
const second = createTestIssuer({ issuer: 'https://second.example/', alg: 'ES256' });
const { audience } = first;
const algorithms = ['ES256'] as const;
const shared = { audience, algorithms };

/** Answers as the provider of an issuer would, without a network. */
function createFetch(issuer = first) {
  return vi.fn(async (url: string) => {
    const documents: Readonly<Record<string, object>> = {
      '/.well-known/openid-configuration': { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}jwks` },
      '/jwks': issuer.jwks,
    };
    return Response.json(documents[new URL(url).pathname] ?? {});
  });
}

function open(options: ResourceServerOptions<Subject>): ResourceServer<RegisteredClaims> {
  const server = createResourceServer(options);
  onTestFinished(server.close);
  return server;
}

describe('one issuer', () => {
  it.each(['https://first.example/', 'first.example'])(
    '%s, with given keys → decided without a network',
    async (issuer) => {
      for (const keys of [first.keys, first.jwks, createStaticKeySet(first.jwks)]) {
        const server = open({ ...shared, issuer, keys });
        expect(await judge(server, bearer(first.token()))).toBe('accepted');
        expect(await judge(server, bearer(second.token()))).toBe('invalid_issuer');
        await server.ready();
      }
    },
  );

  it('without keys → they are fetched when the first token needs them', async () => {
    const fetch = createFetch();
    const server = open({ ...shared, issuer: 'first.example', fetch });
    expect(fetch).not.toHaveBeenCalled();
    expect(await judge(server, bearer(first.token()))).toBe('accepted');
    expect(fetch.mock.calls.map(([url]) => url)).toEqual([
      'https://first.example/.well-known/openid-configuration',
      'https://first.example/jwks',
    ]);
  });

  it.each([
    [0, 'keys_unavailable'],
    [60, 'keys_unavailable'],
    [3600, 'accepted'],
  ])('keysStale %i: 700 s after a fetch, with a provider that is down → %s', async (keysStale, verdict) => {
    let fetch: Fetch = createFetch();
    const server = open({ ...shared, issuer: 'first.example', fetch: (url, init) => fetch(url, init), keysStale });
    await server.ready();
    fetch = () => Promise.reject(new Error('down'));
    const later = performance.now() + 700_000;
    const clock = vi.spyOn(performance, 'now').mockReturnValue(later);
    expect(await judge(server, bearer(first.token()))).toBe(verdict);
    clock.mockRestore();
  });

  it('a clock and one tolerance for all times', async () => {
    const now = 1_700_000_000;
    const issuer = createTestIssuer({ alg: 'ES256', now: () => now });
    const at = (seconds: number) =>
      judge(open({ ...shared, issuers: [issuer], clockTolerance: 10, now: () => seconds }), bearer(issuer.token()));
    expect(await at(now - 10)).toBe('accepted');
    expect(await at(now - 11)).toBe('issued_in_future');
    expect(await at(now + 3609)).toBe('accepted');
    expect(await at(now + 3610)).toBe('expired');
  });
});

describe('judge() and authorize()', () => {
  const call = (token: string) => new Request('https://api.test/messages', bearer(token));
  const refusal = expect.objectContaining({ name: 'AccessError', reason: 'expired' });
  const expired = first.token({ exp: 1 });

  it('keys are here → the one resolves with the refusal, the other rejects with it', async () => {
    const server = open({ ...shared, issuer: first.issuer, keys: first.jwks });
    await expect(server.judge(call(expired))).resolves.toEqual(refusal);
    await expect(server.authorize(call(expired))).rejects.toEqual(refusal);
    const good = first.token();
    expect(await server.judge(call(good))).toEqual(await server.authorize(call(good)));
  });

  it('a forgotten await before authorize() → a promise in every case: no handler goes on with an access', async () => {
    const server = open({ ...shared, issuer: first.issuer, keys: first.jwks });
    const answers = [call(expired), call(first.token()), call('')].map((request) => server.authorize(request));
    answers.push(server.authorize(call(expired), { scopes: [] }));
    for (const answer of answers) expect(answer).toBeInstanceOf(Promise);
    const outcomes = await Promise.allSettled(answers);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'rejected']);
  });

  it('keys to be fetched → the one resolves with the refusal, the other rejects with it', async () => {
    const make = () => open({ ...shared, issuer: first.issuer, fetch: createFetch() });
    await expect(make().judge(call(expired))).resolves.toEqual(refusal);
    await expect(make().authorize(call(expired))).rejects.toEqual(refusal);
  });

  it('a refusal that is found deep below, of a host or a certificate → returned as well', async () => {
    const server = open({ ...shared, issuer: first.issuer, keys: first.jwks });
    const request = { method: 'GET', url: 'https://a b/', headers: new Headers() };
    expect(await server.judge(request)).toEqual(expect.objectContaining({ reason: 'bad_host_header' }));
  });
});

describe('ready()', () => {
  it('resolves when the keys of every issuer are there', async () => {
    const fetch = createFetch();
    const server = open({ ...shared, issuers: ['first.example', second], fetch });
    await server.ready();
    expect(fetch).toHaveBeenCalledTimes(2);
    await server.authorize(new Request('https://api.test/', { headers: first.headers() }));
    expect(fetch).toHaveBeenCalledTimes(2);
  });

  it('rejects with the ProviderError of the issuer that fails', async () => {
    const fetch = async () => new Response('', { status: 500 });
    const server = open({ ...shared, issuers: [second, 'first.example'], fetch });
    await expect(server.ready()).rejects.toBeInstanceOf(ProviderError);
    expect(await judge(server, bearer(first.token()))).toBe('keys_unavailable');
    expect(await judge(server, bearer(second.token()))).toBe('accepted');
  });

  it.each([
    ['can judge at once', [true], undefined],
    ['can judge after a fetch', [false, true], undefined],
    ['cannot judge after a fetch', [false, false], 'no_usable_keys'],
  ])('a key set of the caller that has no ready() and %s → %j', async (_name, answers, kind) => {
    const usable = vi.fn(() => answers[Math.min(usable.mock.calls.length, answers.length) - 1] === true);
    const keys: KeySet = { ...first.keys, usable, refetch: async () => undefined };
    const ready = open({ ...shared, issuer: first.issuer, keys }).ready();
    if (kind === undefined) await expect(ready).resolves.toBeUndefined();
    else await expect(ready).rejects.toMatchObject({ kind });
  });
});

describe('close()', () => {
  it('ends the key sets that the server opened, and no other', async () => {
    const fetch = createFetch();
    const keys = createKeySet({ issuer: first.issuer, fetch });
    const server = createResourceServer({
      ...shared,
      issuers: [{ issuer: first.issuer, keys }, 'second.example'],
      fetch,
    });
    server.close();
    await expect(server.ready()).rejects.toMatchObject({ kind: 'closed' });
    await keys.ready();
    expect(keys.usable()).toBe(true);
    keys.close();
  });

  it('cached keys stay in use', async () => {
    const server = open({ ...shared, issuer: 'first.example', fetch: createFetch() });
    await server.ready();
    server.close();
    expect(await judge(server, bearer(first.token()))).toBe('accepted');
  });
});

describe('several issuers', () => {
  it('each with its own keys and rules', async () => {
    const issuers = [
      {
        issuer: first.issuer,
        keys: first.keys,
        rules: { audience: 'one', clockTolerance: { exp: 0, nbf: 0 }, subject: 'required' },
      },
      { issuer: second.issuer, keys: second.jwks, rules: { audience: ['two'] } },
    ] as const;
    const server = open({ issuers, algorithms, subject: 'optional' });
    expect(await judge(server, bearer(first.token({ aud: 'one' })))).toBe('accepted');
    expect(await judge(server, bearer(first.token({ aud: 'two' })))).toBe('invalid_audience');
    expect(await judge(server, bearer(first.token({ aud: 'one', sub: undefined })))).toBe('malformed_sub');
    expect(await judge(server, bearer(second.token({ aud: 'two', sub: undefined })))).toBe('accepted');
    expect(await judge(server, bearer(second.token({ aud: 'one' })))).toBe('invalid_audience');
    const answer = server.refuse(new AccessError('expired'), new Request('https://api.test/'));
    expect(answer.headers.get('www-authenticate')).toContain('realm="one two"');
  });

  it("a test issuer brings its keys; the audience is the server's", async () => {
    const server = open({ issuers: [first], algorithms, audience: 'another' });
    expect(await judge(server, bearer(first.token()))).toBe('invalid_audience');
  });
});

describe('events', () => {
  it('key sets and refusals, with what helps the operator and no token', async () => {
    const events: ResourceServerEvent[] = [];
    const server = open({
      ...shared,
      issuer: 'first.example',
      fetch: createFetch(),
      onEvent: (event) => events.push(event),
    });
    const token = first.token({}, { kid: 'unknown' });
    expect(await judge(server, bearer(token))).toBe('unknown_kid');
    expect(await judge(server, bearer(first.token()))).toBe('accepted');
    expect(await judge(server, { headers: {} })).toBe('missing_credentials');
    expect(events.map(({ type }) => type)).toEqual(['keys', 'keys', 'refused', 'granted', 'refused']);
    expect(events[1]).toMatchObject({ type: 'keys', issuer: first.issuer, event: { type: 'fetched', keys: 1 } });
    const context = { issuer: first.issuer, kid: 'unknown' };
    const refused = { type: 'refused', method: 'GET', path: '/messages', cause: undefined };
    expect(events[2]).toEqual({ ...refused, reason: 'unknown_kid', context });
    expect(events[4]).toMatchObject({ reason: 'missing_credentials', context: undefined });
    expect(JSON.stringify(events)).not.toContain(token.split('.')[1]);
  });

  it.each<readonly [Reason, Readonly<Record<string, unknown>>, Policy, object]>([
    ['invalid_audience', { aud: 'other' }, {}, { expected: shared.audience, received: 'other' }],
    ['invalid_issuer', { iss: 'https://a.test/' }, {}, { expected: first.issuer, received: 'https://a.test/' }],
    ['insufficient_scope', { scope: 'a b' }, { scopes: ['b', 'c'] }, { expected: 'b, c', received: 'a, b' }],
    ['invalid_audience', { aud: undefined }, {}, { received: '(absent)' }],
    ['missing_permission', {}, { permissions: ['b'] }, { expected: 'b', received: '(absent)' }],
    ['unaccepted_acr', { acr: 'a' }, { acr: 'b' }, { expected: 'b', received: 'a' }],
    ['missing_permission', { permissions: ['a'] }, { permissions: ['b'] }, { expected: 'b', received: 'a' }],
    ['invalid_audience', { aud: 'eyJhbGciOiJFUzI1NiJ9.a' }, {}, { received: '(withheld: it looks like a token)' }],
    ['invalid_audience', { aud: '\u001b[2J' }, {}, { received: '\\u{1b}[2J' }],
  ])('%s of %j, with %j → context %j, and one line', async (reason, claims, policy, context) => {
    const events: ResourceServerEvent[] = [];
    const lines: string[] = [];
    const explain = explainRefusals((line) => lines.push(line));
    const onEvent = (event: ResourceServerEvent) => {
      if (event.type !== 'keys') events.push(event);
      explain(event);
    };
    const server = open({ ...shared, issuers: [first], onEvent });
    expect(await judge(server, bearer(first.token(claims)), policy)).toBe(reason);
    expect(events).toMatchObject([{ type: 'refused', reason, context }]);
    const facts = Object.entries(context).map(([name, value]) => `${name} ${value}`);
    for (const fact of [`portcullis: GET /messages refused: ${reason}; `, ...facts, failures[reason].fix]) {
      expect(lines.join('\n')).toContain(fact);
    }
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toMatch(/\p{Cc}|eyJ/u);
  });

  const token = first.token();
  it.each([
    ['https://api.test/orders/7?access_token=a', undefined, '/orders/7'],
    ['https://api.test', undefined, '/'],
    ['https://api.test/x', '/as-sent?q#f', '/as-sent'],
    [`https://api.test/reset/${token}/now`, undefined, '/reset/…/now'],
    ['https://api.test/users/alice@example.com/bob%40example.com', undefined, '/users/…/…'],
    ['https://api.test/\u001b[2J', undefined, '/\\u{1b}[2J'],
    [`https://api.test/${'a/'.repeat(500)}`, undefined, `/${'a/'.repeat(79)}a… (1001 characters)`],
  ])('a refusal of %s, target %s → a line with %s', async (url, target, path) => {
    const lines: string[] = [];
    const server = open({ ...shared, issuers: [first], onEvent: explainRefusals((line) => lines.push(line)) });
    await server.judge({ method: 'POST', url, target, headers: new Headers() });
    expect(lines).toEqual([expect.stringContaining(`portcullis: POST ${path} refused: missing_credentials; `)]);
  });

  it('explainRefusals with a logger instead of its function → TypeError', () =>
    expect(() => explainRefusals(console as never)).toThrow(/^explainRefusals: write a function/));

  it('a valid token → granted, without the token, and no line', async () => {
    const events: ResourceServerEvent[] = [];
    const lines: string[] = [];
    const server = open({ ...shared, issuers: [first], onEvent: (event) => events.push(event) });
    expect(await judge(server, bearer(first.token()))).toBe('accepted');
    expect(events).toEqual([{ type: 'granted', method: 'GET', scheme: 'Bearer' }]);
    for (const event of events) explainRefusals((line) => lines.push(line))(event);
    expect(lines).toEqual([]);
  });

  it('an error that is not in the table → unexpected, with its cause', async () => {
    const cause = new Error('the clock has stopped');
    const onEvent = vi.fn();
    const validate = vi.fn().mockThrow(cause);
    const server = open({ ...shared, issuers: [first], onEvent });
    const policy = { claims: { '~standard': { version: 1 as const, vendor: 'test', validate } } };
    await expect(judge(server, bearer(first.token()), policy)).rejects.toBe(cause);
    const refused = { type: 'refused', reason: 'unexpected', method: 'GET', path: '/messages' };
    expect(onEvent).toHaveBeenCalledWith({ ...refused, context: undefined, cause });
  });
});

describe('policies', () => {
  const url = 'https://api.test/messages';
  const server = createResourceServer({ ...shared, issuers: [first] });
  const level = z.object({ level: z.number() });
  const schemas = [
    ['at once', level],
    ['later', level.refine(async () => true)],
  ] as const;

  it.each(schemas)(
    'DPoP: a proof is consumed only when the policy holds (a schema that returns %s)',
    async (_name, claims) => {
      const client = first.dpopClient();
      const token = client.token();
      const headers = client.headers({ url, token });
      expect(await judge(server, { url, headers }, { claims })).toBe('unaccepted_claims');
      expect(await judge(server, { url, headers }, { scopes: ['read'] })).toBe('insufficient_scope');
      expect(await judge(server, { url, headers })).toBe('accepted');
      expect(await judge(server, { url, headers })).toBe('proof_replayed');
      const good = client.headers({ url, token: client.token({ level: 1 }) });
      expect(await judge(server, { url, headers: good }, { claims })).toBe('accepted');
    },
  );

  it('an invalid policy → TypeError, whatever the request brings', async () => {
    const policy = { scope: 'read' } as unknown as Policy; // as from code without types
    const onEvent = vi.fn();
    const told = open({ ...shared, issuers: [first], onEvent });
    for (const each of [server, told]) {
      for (const method of ['judge', 'authorize'] as const) {
        const judged = each[method](new Request(url), policy);
        await expect(judged).rejects.toThrow(/^policy: there is no scope; write any of audience, scopes/);
      }
    }
    expect(onEvent).toHaveBeenCalledWith(expect.objectContaining({ reason: 'unexpected' }));
  });

  it('permissions: from the claim that the server, or the issuer, names', async () => {
    const issuers = [first, { issuer: second.issuer, keys: second.keys, rules: { permissionsClaim: 'roles' } }];
    const several = open({ ...shared, issuers, permissionsClaim: 'rights' });
    const policy = { permissions: ['read'] };
    expect(await judge(several, bearer(first.token({ rights: ['read'] })), policy)).toBe('accepted');
    expect(await judge(several, bearer(first.token({ roles: ['read'] })), policy)).toBe('missing_permission');
    expect(await judge(several, bearer(second.token({ roles: ['read'] })), policy)).toBe('accepted');
  });

  it.each(schemas)(
    "policy of an issuer → checked in addition to the route's, and gives the handler nothing (%s)",
    async (_name, claims) => {
      const issuers = [{ issuer: first.issuer, keys: first.keys, rules: { policy: { claims } } }, second];
      const several = open({ ...shared, issuers });
      const policy = { scopes: ['read'] };
      expect(await judge(several, bearer(first.token({ scope: 'read' })), policy)).toBe('unaccepted_claims');
      expect(await judge(several, bearer(first.token({ level: 1 })), policy)).toBe('insufficient_scope');
      expect(await judge(several, bearer(second.token({ scope: 'read' })), policy)).toBe('accepted');
      const request = new Request(url, { headers: first.headers({ level: 1, scope: 'read' }) });
      expect((await several.authorize(request, policy)).claims).toMatchObject({ level: 1, scope: 'read' });
    },
  );

  it.each([{ scopes: ['a'] }, { anyScope: ['a'] }, { permissions: ['a'] }, { claims: level }])(
    '%j → 403, or the status of refusalStyle',
    async (policy) => {
      const request = new Request(url, { headers: first.headers() });
      for (const status of [undefined, 401] as const) {
        const each = open({
          ...shared,
          issuers: [first],
          ...(status && { refusalStyle: { challenge: 'full', insufficientScopeStatus: status } }),
        });
        const error = await Promise.resolve()
          .then(() => each.authorize<unknown>(request, policy))
          .catch((thrown: unknown) => thrown);
        expect(each.refuse(error, request, { policy }).status).toBe(status ?? 403);
      }
    },
  );
});

describe('left to the caller', () => {
  /** A promise of another library. */
  const thenable = (value: unknown) =>
    // biome-ignore lint/suspicious/noThenProperty: another library's promise is the case.
    ({ then: (resolve: (value: unknown) => void) => resolve(value) }) as Promise<boolean>;
  const url = 'https://api.test/messages';
  const client = first.dpopClient();

  it.each<[string, ReplayStore | 'off', Reason | 'accepted']>([
    ['off', 'off', 'accepted'],
    ['a store that answers at once', { witness: () => false }, 'proof_replayed'],
    ['a store that answers later', { witness: async () => false }, 'proof_replayed'],
    ['a store that fails later', { witness: () => Promise.reject(new Error('down')) }, 'replay_store_unavailable'],
    ['a store that lets pass later', { witness: async () => true }, 'accepted'],
    ["a store with another library's promise", { witness: () => thenable(true) }, 'accepted'],
    ['a store with such a promise of null', { witness: () => thenable(null) }, 'replay_store_unavailable'],
    ['a store that throws', { witness: () => JSON.parse('{') }, 'replay_store_unavailable'],
    ['a store that returns nothing', { witness: () => undefined as never }, 'replay_store_unavailable'],
    ['a store that returns 1', { witness: async () => 1 as never }, 'replay_store_unavailable'],
  ])('replay: %s → %s', async (_name, replay, verdict) => {
    const server = open({ ...shared, issuers: [first], dpop: { replay } });
    const headers = client.headers({ url });
    await judge(server, { url, headers });
    expect(await judge(server, { url, headers })).toBe(verdict);
  });

  it('replay: a store that never settles → replay_store_unavailable after 3 s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const server = open({ ...shared, issuers: [first], dpop: { replay: { witness: () => new Promise(() => {}) } } });
    const outcome = judge(server, { url, headers: client.headers({ url }) });
    await vi.advanceTimersByTimeAsync(3000);
    expect(await outcome).toBe('replay_store_unavailable');
  });

  it('nonces: required, sent, and renewed with the response', async () => {
    const nonces = createNonces({ secret: 'x'.repeat(32) });
    const server = open({ ...shared, issuers: [first], dpop: { nonces } });
    expect(await judge(server, { url, headers: client.headers({ url }) })).toBe('missing_proof_nonce');
    const refused = server.refuse(new AccessError('missing_proof_nonce'), new Request(url));
    const nonce = refused.headers.get('dpop-nonce') ?? '';
    expect(await judge(server, { url, headers: client.headers({ url, nonce }) })).toBe('accepted');
  });

  it('tokenCache off: every token is verified anew', async () => {
    const server = open({ ...shared, issuers: [first], tokenCache: 'off' });
    const token = first.token();
    expect(await judge(server, bearer(token))).toBe('accepted');
    expect(await judge(server, bearer(token))).toBe('accepted');
    expect(server.tokenCacheStatus()).toBeUndefined();
  });

  it("an error body of the caller's", async () => {
    const errorBody: ErrorBodyFormat = ({ error = '' }) => ({ contentType: 'text/plain', body: error });
    const server = open({ ...shared, issuers: [first], errorBody });
    expect(await server.refuse(new AccessError('expired'), new Request(url)).text()).toBe('invalid_token');
    expect(server.describeRefusal(new Error('x'), new Request(url))).toMatchObject({ body: 'server_error' });
  });
});

describe('options that cannot work → TypeError that says the fix, at creation', () => {
  const right = { issuer: 'idp.example', audience: 'api' };
  const listed = (entry: object) => ({ audience: 'api', issuers: [{ issuer: 'https://a/', ...entry }] });

  it.each<[unknown, RegExp]>([
    [undefined, /^createResourceServer: write an object/],
    [{ audience: 'api' }, /^issuer: write issuer: .* or issuers/],
    [{ ...right, issuers: [] }, /^issuer: .* one of the two/],
    [{ audience: 'api', issuers: [first], keys: first.jwks }, /^keys: write it beside issuer/],
    [{ audience: 'api', issuers: [first], jwksUri: 'https://a/' }, /^jwksUri: write it beside issuer/],
    [{ audience: 'api', issuers: [first], insecure: true }, /^insecure: write it beside issuer/],
    [{ ...right, insecure: 'true' }, /^insecure: write true or false/],
    [{ ...right, jwksUri: 'http://a/' }, /^jwksUri: write an https URL .*needs insecure: true/],
    [{ ...right, jwksUri: 'https://user:s3cret@a/' }, /^jwksUri: write an https URL without credentials/],
    [{ ...right, jwksUri: 'https://a/#x' }, /^jwksUri: write an https URL without credentials and fragment/],
    [{ ...right, jwksUri: 7 }, /^jwksUri: write the https URL/],
    [{ ...right, keys: first.jwks, jwksUri: 'https://a/' }, /^keys: a key set is not fetched/],
    [{ ...right, keys: first.jwks, insecure: true }, /^keys: a key set is not fetched/],
    [{ ...right, issuer: 'http://a/' }, /^issuer: write https:.*insecure: true/],
    [{ ...right, issuer: 'http://a/', insecure: false }, /^issuer: write https:.*insecure: true/],
    [{ ...right, scopeClaim: '' }, /^scopeClaim: write the name/],
    [{ ...right, clientIds: 'web' }, /^clientIds: name at least one client, in a list/],
    [{ ...right, clientIds: [''] }, /^clientIds: name at least one/],
    [{ ...right, isRevoked: true }, /^isRevoked: write a function/],
    [listed({ rules: { subject: 'optional' } }), /^subject: an issuer can only require it/],
    [{ ...right, issuerUrl: 'x' }, /^createResourceServer: there is no issuerUrl; write any of issuer, /],
    [{ ...right, dpop: { required: true } }, /^dpop: there is no required; write any of mode, /],
    [{ ...right, issuer: 'https://idp.example' }, /^issuer: write the domain without https/],
    [{ ...right, issuer: 7 }, /^issuer: write a domain/],
    [{ issuer: 'idp.example' }, /^audience: name at least one/],
    [{ ...right, audience: '' }, /^audience: /],
    [{ ...right, audience: [7] }, /^audience: /],
    [{ audience: 'api', issuers: 'idp.example' }, /^issuers: write a list/],
    [{ audience: 'api', issuers: [7] }, /^issuers: write issuers, or objects/],
    [{ audience: 'api', issuers: [{}] }, /^issuer: write it as iss has it/],
    [listed({ insecure: 'true' }), /^insecure: write true or false/],
    [
      { audience: 'api', issuers: [{ issuer: 'https://idp.test/.well-known/openid-configuration' }] },
      /^issuer: write the issuer without \/\.well-known\/openid-configuration; it is the member issuer/,
    ],
    [
      listed({ audience: 'b' }),
      /^issuers: audience of an issuer belongs into its rules: \{ issuer, rules: \{ audience \} \}$/,
    ],
    [listed({ subject: 'optional' }), /^issuers: subject of an issuer belongs into its rules/],
    [listed({ rules: { aud: 'b' } }), /^rules: there is no aud/],
    [listed({ issuer: 'ftp://a/' }), /https/],
    [{ audience: 'api', issuers: ['idp.example', 'https://idp.example/'] }, /^issuers: name each issuer once/],
    [{ ...right, keys: 'keys.json' }, /^keys: write a key set, or a JWK set/],
    [{ ...right, keys: {} }, /^keys: write a key set, or a JWK set/],
    [{ ...right, keys: createTestIssuer().jwks.keys }, /^keys: write a key set, or a JWK set/],
    [{ ...right, keys: { keys: [] } }, /^keys: write a JWK set with at least one public key/],
    [{ ...right, algorithms: 'RS256' }, /^algorithms: name at least one, in a list/],
    [{ ...right, algorithms: [] }, /^algorithms: name at least one, in a list/],
    [{ ...right, algorithms: ['HS256'] }, /^algorithms: write any of RS256/],
    [{ ...right, clockTolerance: -1 }, /^clockTolerance: write seconds/],
    [{ ...right, clockTolerance: 61 }, /^clockTolerance: write seconds/],
    [{ ...right, clockTolerance: { exp: 61, nbf: 5 } }, /^clockTolerance: write seconds/],
    [{ ...right, clockTolerance: { exp: 5, nbf: 301 } }, /^clockTolerance: write seconds/],
    ...['audience', 'algorithms', 'clockTolerance', 'subject', 'permissionsClaim', 'profile', 'policy'].map(
      (name): [unknown, RegExp] => [
        listed({ rules: { [name]: undefined } }),
        new RegExp(`^rules: ${name} is undefined`),
      ],
    ),
    [{ ...right, clockTolerance: null }, /^clockTolerance: write seconds/],
    [listed({ rules: null }), /^rules: write an object with any of audience/],
    [listed({ rules: Promise.resolve({ policy: { scopes: ['a'] } }) }), /^rules: .*; await a promise first$/],
    [{ ...right, audience: new Array(1) }, /^audience: name at least one/],
    [{ ...right, dpop: Promise.resolve({ mode: 'required' }) }, /^dpop: write an object with any of mode, .*; await/],
    [{ ...right, dpop: new Map([['mode', 'required']]) }, /^dpop: write an object with any of mode/],
    [{ ...right, clockTolerance: { exp: 5 } }, /^clockTolerance: write seconds/],
    [{ ...right, clockTolerance: { exp: 5, nbf: 5, iat: 5 } }, /^clockTolerance: there is no iat/],
    [{ ...right, clockTolerance: Number.POSITIVE_INFINITY }, /^clockTolerance: write seconds/],
    [{ ...right, subject: 'none' }, /^subject: write required or optional/],
    ...['', [], ['roles', 7], [[]], [['roles'], 'rights'], ['rights', ['roles']], [['roles', '']]].map(
      (claim): [unknown, RegExp] => [{ ...right, permissionsClaim: claim }, /^permissionsClaim: write the name/],
    ),
    [{ ...right, clientIdClaim: '' }, /^clientIdClaim: write the name of the claim/],
    [{ ...right, audience: 'unchecked', clientIds: ['web'] }, /^audience: clientIds check whom tokens are for/],
    [listed({ rules: { policy: { scopes: [] } } }), /^policy: scopes must be a list with at least one string/],
    [{ ...right, dpop: 'required' }, /^dpop: write an object/],
    [{ ...right, dpop: { mode: 'on' } }, /^mode: write off or allowed or required/],
    [{ ...right, dpop: { replay: 'redis' } }, /^replay: write off, or a store/],
    [{ ...right, dpop: { nonces: true } }, /^nonces: write createNonces/],
    [{ ...right, clientCertificate: 'socket' }, /^clientCertificate: write tls or header/],
    [{ ...right, tokenCache: 'on' }, /^tokenCache: write off, or an object/],
    [{ ...right, tokenCache: { maxEntries: 0 } }, /^tokenCache: /],
    [{ ...right, fetch: 'fetch' }, /^fetch: write a function/],
    [{ ...right, fetch, ca: 'pem' }, /^ca: it is for the built-in client/],
    [{ ...right, ca: 'no pem' }, /certificate in PEM/],
    [{ ...right, ca: '' }, /^ca: write certificates/],
    [{ ...right, keysStale: -1 }, /^keysStale: write seconds beyond freshness, 0 to 86400/],
    [{ ...right, keysStale: 86_401 }, /^keysStale: /],
    [{ ...right, keysStale: '60' }, /^keysStale: /],
    ...[0, -1, 1.5, 100_001, '10', Number.NaN].map((maxOpenIssuers): [unknown, RegExp] => [
      { audience: 'api', issuers: { find: () => undefined }, maxOpenIssuers },
      /^maxOpenIssuers: write a whole number/,
    ]),
    [{ ...right, maxOpenIssuers: 10 }, /^maxOpenIssuers: it is for issuers with find/],
    [{ audience: 'api', issuers: [first], maxOpenIssuers: 10 }, /^maxOpenIssuers: it is for issuers with find/],
    [{ audience: 'api', issuers: { find: () => undefined }, algorithms: [] }, /^algorithms: /],
    [{ audience: 'api', issuers: () => [] }, /^issuers: write a list, or an object with .* a list was removed$/],
    [{ ...right, onEvent: true }, /^onEvent: write a function/],
    [{ ...right, trustProxy: ['not an address'] }, /address or a CIDR range/],
    [{ ...right, trustProxy: true }, /^trustProxy: write 'none', 'all', or a list .*; true is none of these/],
    [{ ...right, trustProxy: '10.0.0.1' }, /^trustProxy: /],
    [{ ...right, errorBody: 'xml' }, /^errorBody: write detail, flat, message, problem, or a function/],
    ...[
      { challenge: 'none', insufficientScopeStatus: 403 },
      { challenge: 'full', insufficientScopeStatus: 404 },
      { challenge: 'full' },
      { challenge: 'full', insufficientScopeStatus: 403, other: 1 },
    ].map((refusalStyle): [unknown, RegExp] => [{ ...right, refusalStyle }, /^refusalStyle: write/]),
    [{ ...right, now: 0 }, /^now: write a function/],
  ])('%j', (options, fix) => {
    const create = () => open(options as ResourceServerOptions); // as from code without types
    expect(create).toThrow(TypeError);
    expect(create).toThrow(fix);
  });

  it('options that are undefined count as absent', () => {
    const options = { ...right, keys: undefined, fetch: undefined, dpop: undefined, onEvent: undefined };
    expect(() => open(options as unknown as ResourceServerOptions)).not.toThrow();
  });
});
