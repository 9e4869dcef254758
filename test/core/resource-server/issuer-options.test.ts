import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ProviderError } from '../../../src/core/outbound/provider-error.ts';
import type { IssuerRequest } from '../../../src/core/resource-server/issuers/issuer-finder.ts';
import type { ResourceServerEvent, ResourceServerOptions } from '../../../src/core/resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import type { IsRevoked } from '../../../src/core/token/withdrawal.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';
import { type PlainIssuer, type PlainIssuerOptions, startPlainIssuer } from '../../support/plain-issuer.ts';
import { bearer, judge } from '../../testing/judge.ts';

const audience = 'https://api.test/';
async function start(options?: PlainIssuerOptions): Promise<PlainIssuer> {
  const issuer = await startPlainIssuer(options);
  onTestFinished(async () => void (await issuer.close()));
  return issuer;
}

function create(options: ResourceServerOptions): ResourceServer {
  const server = createResourceServer({ algorithms: ['ES256'], ...options });
  onTestFinished(server.close);
  return server;
}

const memory = createTestIssuer({ alg: 'ES256', audience });
const inMemory = { issuer: memory.issuer, keys: memory.keys };

describe('insecure: an issuer without TLS', () => {
  it('its tokens are accepted, and one event reports it', async () => {
    const issuer = await start({
      issuer: (origin) => `${origin}/realms/main`,
      discoveryPath: '/realms/main/.well-known/openid-configuration',
    });
    const events: ResourceServerEvent[] = [];
    const server = create({ issuer: issuer.issuer, insecure: true, audience, onEvent: (event) => events.push(event) });
    await server.ready();
    expect(await judge(server, bearer(issuer.token()))).toBe('accepted');
    expect(await judge(server, bearer(issuer.flawed('invalid_signature')))).toBe('invalid_signature');
    expect(events.filter(({ type }) => type === 'insecure')).toEqual([{ type: 'insecure', issuer: issuer.issuer }]);
  });

  it('one among several: only that one may be without TLS', async () => {
    const [one, other] = [await start(), await start()];
    const issuers = [{ issuer: one.issuer, insecure: true }];
    const server = create({ issuers, audience });
    expect(await judge(server, bearer(one.token()))).toBe('accepted');
    expect(() => create({ issuers: [...issuers, { issuer: other.issuer }], audience })).toThrow(
      /^issuer: it is not a plain https URL; a provider without TLS needs insecure: true$/,
    );
    expect(other.paths).toEqual([]);
  });

  it('without it, a discovery document that points to plain http → no keys', async () => {
    const tls = await createTestIssuer({ alg: 'ES256', audience }).listen();
    onTestFinished(async () => void (await tls.close()));
    const plain = await start();
    const fetch = vi.fn(async (url: string) =>
      Response.json(url.startsWith('https') ? { issuer: tls.issuer, jwks_uri: `${plain.origin}/jwks` } : plain.jwks),
    );
    const options = { issuer: tls.issuer, audience, fetch };
    await expect(create(options).ready()).rejects.toMatchObject({ kind: 'bad_jwks_uri' });
    expect(fetch.mock.calls.map(([url]) => new URL(url).protocol)).toEqual(['https:']);
    await create({ ...options, insecure: true }).ready();
  });

  it('an untrusted certificate → refused', async () => {
    const tls = await createTestIssuer({ alg: 'ES256', audience }).listen();
    onTestFinished(async () => void (await tls.close()));
    const error = await create({ issuer: tls.issuer, insecure: true, audience })
      .ready()
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toMatchObject({ kind: 'tls' });
  });
});

describe('jwksUri: keys without discovery', () => {
  it('fetched from there, and no other request is sent', async () => {
    const issuer = await start({ jwksPath: '/keys?app=orders' });
    const server = create({
      issuer: issuer.issuer,
      jwksUri: `${issuer.origin}/keys?app=orders`,
      insecure: true,
      audience,
    });
    expect(await judge(server, bearer(issuer.token()))).toBe('accepted');
    expect(issuer.paths).toEqual(['/keys?app=orders']);
  });

  it('an issuer in a list, whose name is not an address', async () => {
    const issuer = await start({ issuer: () => 'the-issuer' });
    const issuers = [{ issuer: 'the-issuer', jwksUri: `${issuer.origin}/jwks`, insecure: true }];
    const server = create({ issuers, audience });
    expect(await judge(server, bearer(issuer.token()))).toBe('accepted');
    expect(await judge(server, bearer(issuer.token({ iss: 'The-issuer' })))).toBe('invalid_issuer');
  });

  it('find that returns other places for one issuer → a key set for each', async () => {
    const [one, two] = [await start({ issuer: () => 'shared' }), await start({ issuer: () => 'shared' })];
    const entries = [one, two].map(({ origin }) => ({ issuer: 'shared', jwksUri: `${origin}/jwks`, insecure: true }));
    const issuers = { find: (_: string, { url }: IssuerRequest) => entries[url.endsWith('/two') ? 1 : 0] };
    const server = create({ issuers, audience });
    const ask = (path: string, token: string) => judge(server, { ...bearer(token), url: `https://api.test/${path}` });
    expect(await ask('one', one.token())).toBe('accepted');
    expect(await ask('two', two.token())).toBe('accepted');
    expect(await ask('one', two.token())).toBe('unknown_kid');
    expect(await ask('two', one.token())).toBe('unknown_kid');
  });
});

describe('clientIds', () => {
  it('with an audience → both are required', async () => {
    const server = create({ issuers: [inMemory], clientIds: ['web'], audience });
    expect(await judge(server, bearer(memory.token({ client_id: 'web' })))).toBe('accepted');
    expect(await judge(server, bearer(memory.token()))).toBe('unaccepted_client');
    expect(await judge(server, bearer(memory.token({ aud: undefined, client_id: 'web' })))).toBe('invalid_audience');
  });

  it('of one issuer among several; the challenge names audiences, or issuers if there are none', async () => {
    const other = createTestIssuer({ issuer: 'https://other.test/', alg: 'ES256', audience });
    const withClients = { ...inMemory, rules: { clientIds: ['web'] } } as const;
    const server = create({ issuers: [withClients, { issuer: other.issuer, keys: other.keys, rules: { audience } }] });
    expect(await judge(server, bearer(memory.token({ aud: undefined, client_id: 'web' })))).toBe('accepted');
    expect(await judge(server, bearer(other.token()))).toBe('accepted');
    expect(await judge(server, bearer(other.token({ aud: undefined, client_id: 'web' })))).toBe('invalid_audience');
    const challenged = create({ issuers: [withClients] });
    const refused = await challenged.judge(new Request('https://api.test/'));
    const { headers } = challenged.describeRefusal(refused, new Request('https://api.test/'));
    expect(headers['www-authenticate']).toContain(`realm="${memory.issuer}"`);
  });
});

it('scopeClaim → the scopes of the handler and of policies', async () => {
  const server = create({ issuers: [inMemory], audience, scopeClaim: 'scp' });
  const request = new Request('https://api.test/', { headers: memory.headers({ scp: ['a', 'b c'] }) });
  expect([...(await server.authorize(request)).scopes]).toEqual(['a', 'b c']);
  const scoped = (claims: Readonly<Record<string, unknown>>) =>
    judge(server, bearer(memory.token({ ...claims })), { scopes: ['orders:read'] });
  expect(await scoped({ scp: 'openid orders:read' })).toBe('accepted');
  expect(await scoped({ scp: ['openid orders:read'] })).toBe('insufficient_scope');
  expect(await scoped({ scope: 'orders:read' })).toBe('insufficient_scope');
  expect(await scoped({ scp: { 'orders:read': true } })).toBe('malformed_scope');
});

it.each<[unknown, readonly string[]]>([
  ['editor', ['editor']],
  ['editor admin', ['editor admin']],
  [{ editor: true }, []],
  [7, []],
])('a claim that is not an array, %j → permissions %j', async (claim, expected) => {
  const headers = memory.headers({ permissions: claim });
  const { permissions } = await create({ issuers: [inMemory], audience }).authorize(
    new Request('https://api.test/', { headers }),
  );
  expect([...permissions]).toEqual(expected);
});

describe('permissionsClaim with several paths', () => {
  const permissionsClaim = [['realm_access', 'roles'], ['resource_access', 'orders', 'roles'], ['rights']] as const;
  const of = (roles: unknown) => ({ resource_access: { orders: { roles } } });

  it.each<[object, readonly string[], string]>([
    [{ realm_access: { roles: ['editor'] } }, ['editor'], 'accepted'],
    [{ realm_access: { roles: ['editor'] }, ...of(['approver', 'editor']) }, ['editor', 'approver'], 'accepted'],
    [{ realm_access: { roles: 'editor' }, ...of(['approver']), rights: [7] }, ['editor', 'approver'], 'accepted'],
    [{ permissions: ['editor'], resource_access: { account: { roles: ['editor'] } } }, [], 'missing_permission'],
    [{}, [], 'missing_permission'],
  ])('%j → permissions %j, %s', async (claims, permissions, outcome) => {
    const server = create({ issuers: [inMemory], audience, permissionsClaim });
    const request = new Request('https://api.test/', { headers: memory.headers({ ...claims }) });
    const access = await server.authorize(request);
    expect([...access.permissions]).toEqual(permissions);
    expect(Object.keys(access)).not.toContain('permissions');
    expect(() => (access.permissions as Set<string>).add('admin')).toThrow(TypeError);
    expect(await judge(server, bearer(memory.token({ ...claims })), { permissions: ['editor'] })).toBe(outcome);
  });
});

it.each<[string | readonly string[], object, string]>([
  ['unchecked', { aud: undefined, client_id: undefined }, 'accepted'],
  ['unchecked', { aud: undefined, client_id: 'web' }, 'unaccepted_client'],
  ['unchecked', { aud: 'unchecked', client_id: undefined }, 'invalid_audience'],
  [['unchecked'], { aud: 'unchecked' }, 'accepted'],
  [['unchecked'], { aud: undefined, client_id: undefined }, 'invalid_audience'],
])("audience: 'unchecked': %j, token with %j → %s", async (expected, claims, outcome) => {
  const server = create({ issuers: [inMemory], audience: expected });
  expect(await judge(server, bearer(memory.token({ ...claims })))).toBe(outcome);
});

it.each([
  [' urn:api', '" "'],
  ['urn:api\n', '"\\n"'],
  ['"urn:api"', '"\\""'],
  [['urn:api', '“urn:b”'], '"“"'],
])('audience %j → TypeError that names the character', (odd, character) => {
  expect(() => create({ issuers: [inMemory], audience: odd })).toThrow(
    `audience: remove ${character} from its beginning or end`,
  );
});

describe('several audiences', () => {
  const server = createResourceServer({ issuers: [inMemory], audience: ['orders', 'billing'], algorithms: ['ES256'] });

  it.each<[string | readonly string[] | undefined, string, string]>([
    [undefined, 'orders', 'accepted'],
    [undefined, 'billing', 'accepted'],
    [undefined, 'other', 'invalid_audience'],
    ['orders', 'orders', 'accepted'],
    ['orders', 'billing', 'invalid_audience'],
    [['orders', 'other'], 'other', 'invalid_audience'],
  ])('policy for %j, token for %s → %s', async (wanted, aud, outcome) => {
    const policy = wanted === undefined ? {} : { audience: wanted };
    expect(await judge(server, bearer(memory.token({ aud })), policy)).toBe(outcome);
  });
});

describe('isRevoked', () => {
  const serve = (isRevoked: IsRevoked) => create({ issuers: [memory], audience, isRevoked });

  it.each<[string, () => unknown, string]>([
    ['a promise of false', async () => false, 'accepted'],
    ['true', () => true, 'revoked_token'],
    ['a promise of true', async () => true, 'revoked_token'],
    ['a rejection', () => Promise.reject(new Error('down')), 'revocation_unknown'],
    [
      'a thrown error',
      () => {
        throw new Error('down');
      },
      'revocation_unknown',
    ],
    ['undefined', () => undefined, 'revocation_unknown'],
    ['a promise of 0', async () => 0, 'revocation_unknown'],
  ])('%s → %3$s', async (_name, isRevoked, outcome) =>
    expect(await judge(serve(isRevoked as IsRevoked), bearer(memory.token()))).toBe(outcome),
  );

  it('a promise that never settles → revocation_unknown after 3 s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const outcome = judge(
      serve(() => new Promise(() => {})),
      bearer(memory.token()),
    );
    await vi.advanceTimersByTimeAsync(3000);
    expect(await outcome).toBe('revocation_unknown');
  });

  it('a token that was admitted → refused, and admitted again', async () => {
    let answer = false;
    const server = serve(() => answer);
    const token = bearer(memory.token());
    for (const expected of ['accepted', 'accepted', 'revoked_token', 'accepted']) {
      answer = expected === 'revoked_token';
      expect(await judge(server, token)).toBe(expected);
    }
    expect(server.tokenCacheStatus()?.hits).toBeGreaterThan(0);
  });

  it('is called with the claims and the key, after the signature was checked', async () => {
    const isRevoked = vi.fn(async () => false);
    const server = serve(isRevoked);
    expect(await judge(server, bearer(memory.flawed('invalid_signature')))).toBe('invalid_signature');
    expect(isRevoked).not.toHaveBeenCalled();
    await judge(server, bearer(memory.token({ sub: 'alice' })));
    expect(isRevoked).toHaveBeenCalledWith({ claims: expect.objectContaining({ sub: 'alice' }), kid: memory.kid });
  });

  it('a promise → later checks run too', async () => {
    const server = serve(async () => false);
    expect(await judge(server, bearer(memory.token()), { scopes: ['a'] })).toBe('insufficient_scope');
    expect(await judge(server, bearer(memory.flawed('bound_token_as_bearer')))).toBe('bound_token_as_bearer');
    const client = memory.dpopClient();
    const call = { url: 'https://api.test/messages' };
    expect(await judge(server, { headers: client.headers(call) })).toBe('accepted');
    expect(await judge(server, { headers: client.headers({ ...call, flaw: 'proof_too_old' }) })).toBe('proof_too_old');
  });

  it('an error → 503 with Retry-After, and no challenge', async () => {
    const server = serve(() => Promise.reject(new Error('down')));
    const request = new Request('https://api.test/', { headers: memory.headers() });
    const { status, headers } = server.describeRefusal(await server.judge(request), request);
    expect(status).toBe(503);
    expect(headers).toHaveProperty('retry-after');
    expect(headers).not.toHaveProperty('www-authenticate');
  });
});
