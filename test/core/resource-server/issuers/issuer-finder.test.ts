import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { AccessError } from '../../../../src/core/failures.ts';
import type { IssuerFinder, IssuerRequest } from '../../../../src/core/resource-server/issuers/issuer-finder.ts';
import type { TrustedIssuer } from '../../../../src/core/resource-server/issuers/trusted-issuer.ts';
import type { AnyServerOptions, ResourceServerEvent } from '../../../../src/core/resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../../../../src/core/resource-server/resource-server.ts';
import { explain } from '../../../../src/explain/explain.ts';
import { createTestIssuer } from '../../../../src/testing/index.ts';
import { createTenants } from '../../../support/tenants.ts';
import { bearer, type Call, judge } from '../../../testing/judge.ts';

const { nameOf, call, fetch, fetched, down, kit } = createTenants();
const isTenant = (iss: string): boolean => /^https:\/\/tenant-\d+\.example\/$/.test(iss);

const events: ResourceServerEvent[] = [];
type Find = (iss: string, request: IssuerRequest) => unknown;

function open(find: Find, options: Partial<Omit<AnyServerOptions<'required'>, 'issuer'>> = {}): ResourceServer {
  const server = createResourceServer({
    audience: kit.audience,
    algorithms: ['EdDSA'],
    fetch,
    onEvent: (event) => events.push(event),
    issuers: { find } as IssuerFinder, // programs without types
    ...options,
  });
  onTestFinished(server.close);
  return server;
}

let seconds = 1000;
beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => seconds * 1000);
});
afterEach(() => {
  vi.restoreAllMocks();
  fetched.length = 0;
  events.length = 0;
  down.clear();
});

const at = (url: string, { headers }: Call): Call => ({ url, headers });

const finders: readonly (readonly [name: string, find: Find])[] = [
  ['a name', (iss) => (isTenant(iss) ? iss : undefined)],
  ['a new object each time', (iss) => (isTenant(iss) ? { issuer: iss } : undefined)],
  ['a promise', async (iss) => (isTenant(iss) ? { issuer: iss, jwksUri: `${iss}jwks` } : undefined)],
  ['an object with keys', (iss) => (isTenant(iss) ? { issuer: iss, keys: kit.keys } : null)],
  ['an object with rules', (iss) => (isTenant(iss) ? { issuer: iss, rules: { audience: kit.audience } } : undefined)],
  [
    'a thenable',
    // biome-ignore lint/suspicious/noThenProperty: promises of other libraries are like this
    (iss) => ({ then: (settle: (entry: unknown) => void) => settle(isTenant(iss) ? iss : undefined) }),
  ],
];

describe.each(finders)('find returns %s', (_name, find) => {
  it('token of a tenant → accepted, by its own issuer only; the third request is a cache hit', async () => {
    const server = open(find);
    const token = call(1);
    for (let count = 0; count < 3; count++) expect(await judge(server, token)).toBe('accepted');
    expect(server.tokenCacheStatus()).toMatchObject({ hits: 1 });
    expect(await judge(server, call(2))).toBe('accepted');
    expect(await judge(server, bearer(kit.token({ iss: 'https://other.example/' })))).toBe('invalid_issuer');
    expect(await judge(server, call(1, { aud: 'other' }))).toBe('invalid_audience');
    await server.ready();
  });
});

describe('arguments of find', () => {
  it('the unverified iss, and the request without credentials', async () => {
    const seen: unknown[] = [];
    const find: Find = (iss, { method, url, headers }) => {
      seen.push(iss, method, url, ...['authorization', 'DPoP', 'x-tenant'].map((name) => headers.get(name)));
      return iss;
    };
    const forwarded = { 'x-forwarded-host': 'public.test', 'x-forwarded-prefix': '/v1' };
    const headers = { ...call(1).headers, ...forwarded, 'X-Tenant': 'one' };
    const server = open(find, { trustProxy: 'all' });
    expect(await judge(server, { url: 'https://api.test/a?q=1', headers })).toBe('accepted');
    expect(seen).toEqual([nameOf(1), 'GET', 'https://public.test/v1/a', null, null, 'one']);
  });

  it.each<[string, string]>([
    ['opaque', 'opaque_token'],
    ['a.b', 'malformed_token'],
    ['a.b.c', 'malformed_encoding'],
    [kit.flawed('malformed_claims'), 'malformed_claims'],
    [kit.flawed('unsupported_alg'), 'unsupported_alg'],
    [kit.token({ iss: undefined }), 'invalid_issuer'],
    [kit.token({ iss: ['https://tenant-1.example/'] }), 'invalid_issuer'],
  ])('token that no issuer makes valid: %.20s → not called, %s', async (token, reason) => {
    const find = vi.fn((iss: string) => iss);
    expect(await judge(open(find), bearer(token))).toBe(reason);
    expect(find).not.toHaveBeenCalled();
  });

  it('the finder is a class → find is called as its method', async () => {
    class Directory implements IssuerFinder {
      readonly #names = new Set([nameOf(1)]);

      find(iss: string): string | undefined {
        return this.#names.has(iss) ? iss : undefined;
      }
    }
    const server = open(() => undefined, { issuers: new Directory() });
    expect(await judge(server, call(1))).toBe('accepted');
    expect(await judge(server, call(2))).toBe('invalid_issuer');
  });
});

describe('results of find', () => {
  it.each<[string, (iss: string) => unknown]>([
    ['another issuer', () => nameOf(2)],
    ['an issuer in other letters', (iss) => iss.toLowerCase()],
  ])('%s → invalid_issuer, and no fetch', async (_name, find) => {
    const server = open(find);
    const token = bearer(kit.token({ iss: 'https://Tenant-1.example/' }));
    expect(await judge(server, token)).toBe('invalid_issuer');
    expect(fetched).toEqual([]);
  });

  it.each<[string, unknown, RegExp]>([
    ['true', true, /^issuers: write issuers/],
    ['an empty name', '', /^issuer: /],
    ['a misspelled member', { issuer: nameOf(1), jwksUrl: 'https://a/' }, /^issuers: there is no jwksUrl/],
    ['an address without TLS', { issuer: nameOf(1), jwksUri: 'http://a/' }, /^jwksUri: /],
  ])('%s → TypeError, an event, and not cached', async (_name, entry, message) => {
    let result = entry;
    const server = open(() => result);
    await expect(judge(server, call(1))).rejects.toThrow(message);
    expect(events).toEqual([
      expect.objectContaining({ type: 'refused', reason: 'unexpected', cause: expect.any(TypeError) }),
    ]);
    result = nameOf(1);
    expect(await judge(server, call(1))).toBe('accepted');
  });

  it('rules without an audience, and none of the server → TypeError; with one → its audience alone counts', async () => {
    const options = { issuers: { find: () => ({ issuer: nameOf(1), rules: { audience: 'one' } }) }, fetch } as const;
    const server = createResourceServer({ ...options, algorithms: ['EdDSA'] });
    onTestFinished(server.close);
    expect(await judge(server, call(1, { aud: 'one' }))).toBe('accepted');
    expect(await judge(server, call(1))).toBe('invalid_audience');
    // @ts-expect-error: nothing states the audience
    const without = createResourceServer({ issuers: { find: (iss) => iss } });
    await expect(judge(without, call(1))).rejects.toThrow(/^audience: /);
  });

  it.each<[string, Find]>([
    [
      'throws',
      () => {
        throw new Error('no database');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no database'))],
  ])('%s → the error for all requests that wait, an event, and not cached', async (_name, find) => {
    const spied = vi.fn(find);
    const server = open(spied);
    const judged = await Promise.allSettled([judge(server, call(1)), judge(server, call(1))]);
    for (const each of judged) expect(each).toMatchObject({ status: 'rejected', reason: { message: 'no database' } });
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({ reason: 'unexpected', cause: { message: 'no database' } });
    spied.mockImplementation((iss) => iss);
    expect(await judge(server, call(1))).toBe('accepted');
  });

  it('throws AccessError → that refusal', async () => {
    const server = open(() => {
      throw new AccessError('invalid_issuer');
    });
    expect(await judge(server, call(1))).toBe('invalid_issuer');
  });

  it('hangs → keys_unavailable after 3 s with an event, and the next request calls it again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const find = vi.fn<Find>((_iss) => new Promise(() => undefined));
    const server = open(find);
    const judged = Promise.all([judge(server, call(1)), judge(server, call(1))]);
    await vi.advanceTimersByTimeAsync(2999);
    expect(events).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await judged).toEqual(['keys_unavailable', 'keys_unavailable']);
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({ reason: 'keys_unavailable', context: { hint: expect.stringContaining('find') } });
    expect(find).toHaveBeenCalledTimes(1);
    find.mockImplementation((iss) => iss);
    expect(await judge(server, call(1))).toBe('accepted');
    vi.useRealTimers();
  });
});

describe('number of calls of find', () => {
  it.each([
    ['known', nameOf(1), 'accepted'],
    ['unknown', 'https://other.example/', 'invalid_issuer'],
  ])('%s name: 50 requests at once, and more within 5 s → once', async (_name, iss, outcome) => {
    const find = vi.fn(async (name: string) => (isTenant(name) ? name : undefined));
    const server = open(find);
    const tokens = Array.from({ length: 50 }, () => bearer(kit.token({ iss })));
    const judged = await Promise.all(tokens.map((token) => judge(server, token)));
    expect(new Set(judged)).toEqual(new Set([outcome]));
    seconds += 4.9;
    expect(await judge(server, bearer(kit.token({ iss })))).toBe(outcome);
    expect(find).toHaveBeenCalledTimes(1);
    seconds += 0.2;
    expect(await judge(server, bearer(kit.token({ iss })))).toBe(outcome);
    expect(find).toHaveBeenCalledTimes(2);
  });

  it('name that is no longer returned → refused after 5 s, even if the token is cached; and accepted 5 s after its return', async () => {
    const names = new Set([nameOf(1)]);
    const find = vi.fn((iss: string) => (names.has(iss) ? { issuer: iss } : undefined));
    const server = open(find);
    const token = call(1);
    for (let count = 0; count < 3; count++) expect(await judge(server, token)).toBe('accepted');
    names.clear();
    seconds += 5;
    for (let count = 0; count < 3; count++) expect(await judge(server, token)).toBe('invalid_issuer');
    expect(find).toHaveBeenCalledTimes(2);
    names.add(nameOf(1));
    expect(await judge(server, token)).toBe('invalid_issuer');
    seconds += 5;
    for (let count = 0; count < 3; count++) expect(await judge(server, token)).toBe('accepted');
    expect(find).toHaveBeenCalledTimes(3);
    expect(fetched).toHaveLength(2);
  });

  it('rules that change → in use after 5 s', async () => {
    let audience = kit.audience;
    const server = open((iss) => ({ issuer: iss, rules: { audience } }));
    const token = call(1);
    for (let count = 0; count < 3; count++) expect(await judge(server, token)).toBe('accepted');
    audience = 'other';
    seconds += 5;
    expect(await judge(server, token)).toBe('invalid_audience');
  });

  it('names without end → find is called for each, nothing is fetched, and tenants stay cached', async () => {
    const find = vi.fn((iss: string) => (isTenant(iss) ? iss : undefined));
    const server = open(find, { maxOpenIssuers: 4 });
    const token = call(1);
    for (let count = 0; count < 3; count++) expect(await judge(server, token)).toBe('accepted');
    for (let index = 0; index < 300; index++) {
      const iss = `https://made-up-${index}.example/${'x'.repeat(2000)}`;
      expect(await judge(server, bearer(kit.token({ iss })))).toBe('invalid_issuer');
    }
    expect(find).toHaveBeenCalledTimes(301);
    down.add('all');
    expect(await judge(server, token)).toBe('accepted');
    expect(find).toHaveBeenCalledTimes(301);
    expect(fetched).toHaveLength(2);
  });
});

describe('find that takes the request', () => {
  const tenants: Readonly<Record<string, string>> = { 'one.test': nameOf(1), 'two.test': nameOf(2) };
  const byHost = (iss: string, { url }: IssuerRequest): string | undefined =>
    tenants[new URL(url).host] === iss ? iss : undefined;

  it.each<[string, Find]>([
    ['at once', byHost],
    ['in a promise', async (iss, request) => byHost(iss, request)],
    ['by all its arguments', (...all) => byHost(...all)],
  ])('%s → called for each request', async (_name, find) => {
    const spied = vi.fn(find);
    const server = open(spied);
    const token = call(1);
    for (let count = 0; count < 3; count++) {
      const outcomes = await Promise.all([
        judge(server, at('https://two.test/', token)),
        judge(server, at('https://one.test/', token)),
      ]);
      expect(outcomes).toEqual(['invalid_issuer', 'accepted']);
    }
    expect(spied).toHaveBeenCalledTimes(6);
    expect(server.tokenCacheStatus()?.hits).toBeGreaterThan(0);
  });

  it('with one parameter → gets no request, so that its result cannot depend on it', async () => {
    const seen: unknown[] = [];
    const server = open((iss, ...others) => {
      seen.push(others);
      return iss;
    });
    expect(await judge(server, call(1))).toBe('accepted');
    expect(seen).toEqual([[]]);
  });
});

describe('with other options', () => {
  it('introspection: opaque tokens → find is called with the issuer that is queried', async () => {
    const issuer = createTestIssuer({ alg: 'EdDSA' });
    const introspection = await issuer.introspection();
    const find = vi.fn((iss: string) => (iss === issuer.issuer ? issuer : undefined));
    const server = open(find, { introspection });
    expect(await judge(server, bearer(issuer.opaqueToken()))).toBe('accepted');
    expect(find.mock.calls.map(([iss]) => iss)).toEqual([issuer.issuer]);
    expect(await judge(server, bearer(issuer.token()))).toBe('accepted');
    const others = open(() => undefined, { introspection });
    expect(await judge(others, bearer(issuer.opaqueToken()))).toBe('invalid_issuer');
  });

  it('algorithms of the issuer alone count', async () => {
    const rsa = createTestIssuer({ issuer: nameOf(1) });
    const entry: TrustedIssuer = { issuer: nameOf(1), keys: rsa.keys, rules: { algorithms: ['RS256'] } };
    const server = open(() => entry);
    expect(await judge(server, bearer(rsa.token()))).toBe('accepted');
    expect(await judge(server, call(1))).toBe('unsupported_alg');
  });

  it('close() → open key sets are closed', async () => {
    const server = open((iss) => iss);
    expect(await judge(server, call(1))).toBe('accepted');
    server.close();
    expect(await judge(server, call(1))).toBe('accepted');
    expect(await judge(server, call(2))).toBe('keys_unavailable');
  });

  it('the challenge names the audience of the server', async () => {
    const answer = open((iss) => iss).refuse(new AccessError('expired'), new Request('https://api.test/'));
    expect(answer.headers.get('www-authenticate')).toContain(`realm="${kit.audience}"`);
  });

  it('explain → the checks of the issuer that was found', async () => {
    const server = open((iss) => (isTenant(iss) ? iss : undefined));
    const reasonOf = async ({ headers }: Call) =>
      (await explain(server, new Request('https://api.test/', { headers }), {})).reason;
    expect(await judge(server, call(1))).toBe('accepted');
    expect(await reasonOf(call(1))).toBeUndefined();
    expect(await reasonOf(call(1, { aud: 'other' }))).toBe('invalid_audience');
    expect(await reasonOf(bearer(kit.token({ iss: 'https://other.example/' })))).toBe('invalid_issuer');
  });
});

describe('many tenants', () => {
  // A spy records its calls.
  beforeEach(() => void vi.restoreAllMocks());
  const find = async (iss: string) => (isTenant(iss) ? { issuer: iss } : undefined);

  it.each([1, 3])('maxOpenIssuers %i, five tenants → the keys of as many are refreshed', async (maxOpenIssuers) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const server = open(find, { maxOpenIssuers });
    for (let index = 0; index < 5; index++) expect(await judge(server, call(index))).toBe('accepted');
    fetched.length = 0;
    await vi.advanceTimersByTimeAsync(500_000); // keys are fresh for 600 s
    expect(new Set(fetched.map((address) => new URL(address).host)).size).toBe(maxOpenIssuers);
  });

  it('provider that is down when its key set is opened again → its tokens are accepted', async () => {
    const server = open(find, { maxOpenIssuers: 1 });
    expect(await judge(server, call(1))).toBe('accepted');
    expect(await judge(server, call(2))).toBe('accepted');
    down.add('tenant-1.example');
    expect(await judge(server, call(1))).toBe('accepted');
  });

  it('names of 400 tenants in tokens that are not valid → valid tokens of others cause no fetch', async () => {
    const server = open(find, { maxOpenIssuers: 20 });
    const tokens = Array.from({ length: 4 }, (_, index) => call(index));
    for (let round = 0; round < 2; round++) {
      for (const token of tokens) expect(await judge(server, token)).toBe('accepted');
    }
    for (let index = 4; index < 404; index++) {
      const flawed = kit.flawed('invalid_signature', { iss: nameOf(index) });
      expect(await judge(server, bearer(flawed))).toBe('invalid_signature');
    }
    down.add('all');
    const before = fetched.length;
    for (const token of tokens) expect(await judge(server, token)).toBe('accepted');
    expect(fetched).toHaveLength(before);
  });
});
