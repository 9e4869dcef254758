import { describe, expect, it, onTestFinished } from 'vitest';
import { createTestIssuer } from '../../src/testing/index.ts';
import { type Endpoints, introspect, openEntryGate } from '../support/entry-gate.ts';

const idp = createTestIssuer({ issuer: 'https://idp.test/', audience: 'api' });
const partner = createTestIssuer({ issuer: 'https://partner.test/', audience: 'api' });
const keysOf = (issuer: string) => (issuer === partner.issuer ? partner : idp).keys;
const claimsOf = (token: string) => ({
  active: true,
  sub: 'alice',
  aud: 'api',
  exp: Date.now() / 1000 + 60,
  jti: token,
});

/** A gate until the end of the test. */
async function openGate(options: Parameters<typeof openEntryGate>[0]) {
  const gate = await openEntryGate(options);
  onTestFinished(() => gate.close());
  return gate;
}

/** Two entries of one URL, each named by the rule of its path; members of `both` are in both. */
async function open(strict: object, loose: object, endpoints: Endpoints = {}) {
  const entry = { issuer: idp.issuer, audience: 'api' };
  const file = {
    issuers: { strict: { ...entry, ...strict }, loose: { ...entry, ...loose } },
    rules: [
      { id: 'strict', path: '/strict', issuers: ['strict'] },
      { id: 'loose', path: '/loose', issuers: ['loose'] },
      { id: 'report', path: '/report', issuers: ['loose'], mode: 'report' },
    ],
  };
  return { ...(await openGate({ file, keysOf, endpoints })), file };
}

describe('two entries of one issuer', () => {
  it('introspection of another entry → an opaque token is 401, and the endpoint is not queried', async () => {
    const { decide, asked } = await open(
      {},
      { introspection: introspect('https://idp.test/loose') },
      { 'https://idp.test/loose': claimsOf },
    );
    expect(await decide('/loose', 'opaque')).toMatchObject({ status: 200 });
    expect(await decide('/strict', 'opaque')).toMatchObject({ status: 401, reason: 'opaque_token' });
    expect(asked).toEqual(['https://idp.test/loose opaque']);
  });

  it('introspection of JWTs in one entry → the other verifies by signature', async () => {
    const { decide, asked } = await open(
      {},
      { introspection: introspect('https://idp.test/loose', { tokens: 'all' }) },
      { 'https://idp.test/loose': () => ({ active: false }) },
    );
    const token = idp.token();
    expect(await decide('/strict', token)).toMatchObject({ status: 200 });
    expect(await decide('/loose', token)).toMatchObject({ status: 401, reason: 'inactive_token' });
    expect(asked.length).toBe(1);
  });

  it('two endpoints → each entry has its own responses', async () => {
    const { decide, asked } = await open(
      { introspection: introspect('https://idp.test/strict') },
      { introspection: introspect('https://idp.test/loose') },
      {
        'https://idp.test/strict': () => ({ active: false }),
        'https://idp.test/loose': claimsOf,
      },
    );
    for (let i = 0; i < 2; i++) {
      expect(await decide('/loose', 'opaque')).toMatchObject({ status: 200 });
      expect(await decide('/strict', 'opaque')).toMatchObject({ status: 401, reason: 'inactive_token' });
    }
    expect(asked).toEqual(['https://idp.test/loose opaque', 'https://idp.test/strict opaque']);
  });

  it('one endpoint, other clients → one call for each', async () => {
    const introspection = introspect('https://idp.test/both');
    const { decide, asked } = await open(
      { introspection },
      { introspection: { ...introspection, clientId: 'other' } },
      { 'https://idp.test/both': claimsOf },
    );
    for (const path of ['/loose', '/strict', '/loose', '/strict']) {
      expect(await decide(path, 'opaque')).toMatchObject({ status: 200 });
    }
    expect(asked.length).toBe(2);
  });

  it.each([true, false])('scopeClaim differs, opaque: %s → X-Auth-Scope of each rule is its own', async (isOpaque) => {
    const scopes = { scope: 'read', scp: ['admin'] };
    const introspection = introspect('https://idp.test/both');
    const { decide } = await open(
      { introspection },
      { introspection, scopeClaim: 'scp' },
      { 'https://idp.test/both': (token) => ({ ...claimsOf(token), iss: idp.issuer, ...scopes }) },
    );
    const token = isOpaque ? 'opaque' : idp.token(scopes);
    for (const [path, scope] of [
      ['/strict', 'read'],
      ['/loose', 'admin'],
      ['/strict', 'read'],
      ['/loose', 'admin'],
    ] as const) {
      expect((await decide(path, token)).identity).toMatchObject({ 'x-auth-scope': scope });
    }
  });

  it('scopeClaim that a reload changes → the headers of a cached response change', async () => {
    const introspection = introspect('https://idp.test/both');
    const { decide, reload, file } = await open(
      {},
      { introspection },
      { 'https://idp.test/both': (token) => ({ ...claimsOf(token), iss: idp.issuer, scope: 'read', scp: 'admin' }) },
    );
    expect((await decide('/loose', 'opaque')).identity).toMatchObject({ 'x-auth-scope': 'read' });
    const { strict, loose } = file.issuers;
    await reload({ ...file, issuers: { strict, loose: { ...loose, scopeClaim: 'scp' } } });
    expect((await decide('/loose', 'opaque')).identity).toMatchObject({ 'x-auth-scope': 'admin' });
  });

  const header = { typ: 'JWT' };
  it.each([
    ['audience', { audience: 'other' }, idp.token(), 'invalid_audience'],
    ['algorithms', { algorithms: ['ES256'] }, idp.token(), 'unsupported_alg'],
    ['clientIds', { clientIds: ['shop'] }, idp.token(), 'unaccepted_client'],
    ['clientIdClaim', { clientIds: ['test-client'], clientIdClaim: 'cid' }, idp.token(), 'unaccepted_client'],
    ['scopeClaim', { scopeClaim: 'scp' }, idp.token({ scp: 1 }), 'malformed_scope'],
    ['profile', { profile: 'rfc9068' }, idp.token({}, header), 'unsupported_typ'],
    ['clockTolerance', { clockTolerance: 0 }, idp.token({ exp: Math.floor(Date.now() / 1000) }), 'expired'],
  ] as const)('%s differs → only the rule of the stricter entry refuses', async (_member, strict, token, reason) => {
    const { decide } = await open(strict, { clockTolerance: 60 });
    for (let i = 0; i < 3; i++) {
      expect(await decide('/loose', token)).toMatchObject({ status: 200 });
      expect(await decide('/strict', token)).toMatchObject({ status: 401, reason });
    }
  });
});

describe('subject of an entry', () => {
  const introspection = introspect('https://idp.test/both');
  const withSub = (sub: unknown) => ({ 'https://idp.test/both': (token: string) => ({ ...claimsOf(token), sub }) });

  it.each([
    ['absent', undefined, 200],
    ['null', null, 200],
    ['empty', '', 401],
    ['a number', 7, 401],
  ])('optional, sub %s → %s for that entry alone, without a subject in the headers', async (_what, sub, status) => {
    const { decide } = await open({ introspection }, { introspection, subject: 'optional' }, withSub(sub));
    for (const token of [idp.token({ sub }), 'opaque']) {
      expect(await decide('/strict', token)).toMatchObject({ status: 401, reason: 'malformed_sub' });
      const loose = await decide('/loose', token);
      expect(loose.status).toBe(status);
      if (status === 200) expect(loose.identity).toMatchObject({ 'x-auth-subject': '' });
    }
  });

  it('SUBJECT=optional → for entries that do not say otherwise, and without profile', async () => {
    const entry = { issuer: idp.issuer, audience: 'api' };
    const members = { plain: {}, required: { subject: 'required' }, profile: { profile: 'rfc9068' } };
    const names = Object.keys(members);
    const gate = await openGate({
      file: {
        issuers: Object.fromEntries(Object.entries(members).map(([name, own]) => [name, { ...entry, ...own }])),
        rules: names.map((name) => ({ id: name, path: `/${name}`, issuers: [name] })),
      },
      keysOf,
      subject: 'optional',
    });
    const token = idp.token({ sub: null });
    const statuses = await Promise.all(names.map(async (name) => (await gate.decide(`/${name}`, token)).status));
    expect(statuses).toEqual([200, 401, 401]);
  });

  it('optional and a profile that requires sub → a rules error', async () => {
    await expect(open({ subject: 'optional', profile: 'rfc9068' }, {})).rejects.toThrow('the profile rfc9068');
  });
});

it('a JWT of one issuer of a rule → is not sent to the endpoint of the other, which introspects JWTs', async () => {
  const gate = await openGate({
    file: {
      issuers: {
        jwt: { issuer: idp.issuer, audience: 'api' },
        asked: {
          ...{ issuer: partner.issuer, audience: 'api' },
          introspection: introspect('https://partner.test/introspect', { tokens: 'all' }),
        },
      },
      rules: [{ id: 'all', path: '/all', issuers: ['jwt', 'asked'] }],
    },
    keysOf,
    endpoints: { 'https://partner.test/introspect': (token) => ({ ...claimsOf(token), iss: partner.issuer }) },
  });
  expect(await gate.decide('/all', idp.token())).toMatchObject({ status: 200 });
  expect(await gate.decide('/all', createTestIssuer({ issuer: idp.issuer }).token())).toMatchObject({ status: 401 });
  expect(gate.asked).toEqual([]);
  expect(await gate.decide('/all', partner.token())).toMatchObject({ status: 200 });
  expect(await gate.decide('/all', 'opaque')).toMatchObject({ status: 200 });
  expect(gate.asked.length).toBe(2);
});

describe('options of an entry', () => {
  const roles = { permissionsClaim: ['realm_access', 'roles'] };
  const cid = { clientIds: ['shop'], clientIdClaim: 'cid', permissionsClaim: [['rights'], ['a', 'roles']] };
  const both = { permissions: ['admin', 'reader'] };
  const permitted = { rights: ['admin'], a: { roles: ['reader'] } };

  it.each<[entry: object, rule: object, claims: Readonly<Record<string, unknown>>, status: number]>([
    [cid, both, { cid: 'shop', ...permitted }, 200],
    [cid, both, { cid: 'shop', rights: ['admin'] }, 403],
    [cid, both, { client_id: 'shop', ...permitted }, 401],
    [{ audience: 'unchecked' }, {}, { aud: undefined, client_id: undefined }, 401],
    [{ audience: 'unchecked' }, {}, { aud: 'unchecked' }, 200],
    [{ scopeClaim: 'scp' }, { scopes: ['read'] }, { scp: ['read'] }, 200],
    [{ scopeClaim: 'scp' }, { scopes: ['read'] }, { scp: ['other'], scope: 'read' }, 403],
    [roles, { permissions: ['admin'] }, { realm_access: { roles: ['admin'] } }, 200],
    [roles, { permissions: ['admin'] }, { permissions: ['admin'] }, 403],
    [{ clientIds: ['shop'] }, {}, { client_id: 'shop' }, 200],
    [{ clientIds: ['shop'] }, {}, { client_id: 'other' }, 401],
    [{}, { audience: 'special' }, { aud: ['api', 'special'] }, 200],
    [{}, { audience: 'special' }, {}, 401],
  ])('entry %j, rule %j, claims %j → %i', async (entry, rule, claims, status) => {
    const file = {
      issuers: { one: { issuer: idp.issuer, audience: 'api', ...entry } },
      rules: [{ id: 'one', path: '/one', ...rule }],
    };
    const gate = await openGate({ file, keysOf });
    expect((await gate.decide('/one', idp.token(claims))).status).toBe(status);
  });
});
