import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import {
  answerAccessErrors as answerExpressErrors,
  createAuthorize as createExpressAuthorize,
} from '../../src/adapters/express.ts';
import { createAuthorize as createFastifyAuthorize } from '../../src/adapters/fastify.ts';
import { createProtect as createFetchProtect } from '../../src/adapters/fetch.ts';
import {
  answerAccessErrors as answerHonoErrors,
  createAuthorize as createHonoAuthorize,
} from '../../src/adapters/hono.ts';
import { createMcpAuth } from '../../src/adapters/mcp.ts';
import { createGuard, PortcullisModule } from '../../src/adapters/nest.ts';
import { createProtect as createNodeProtect } from '../../src/adapters/node.ts';
import { omitUndefined } from '../../src/core/option-members.ts';
import { namedScopes } from '../../src/core/policy/checked-policy.ts';
import {
  allOf,
  anyOf,
  createIntrospection,
  createKeySet,
  createMemoryReplayStore,
  createNonces,
  createRedisReplayStore,
  createResourceServer,
  type Policy,
  type ResourceServerOptions,
} from '../../src/index.ts';
import { createTestIssuer } from '../../src/testing/index.ts';

const issuer = createTestIssuer({ alg: 'ES256' });
const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
const introspection = { endpoint: 'https://idp.test/', issuer: 'https://idp.test/', clientId: 'a', clientSecret: 'b' };
const mcp = { resource: 'https://api.test/mcp', authorizationServers: ['https://idp.test/'] };
const call = { url: 'https://api.test/', token: 'a' };
const client = issuer.dpopClient();

// The compiler refuses each of these too: that it does is a part of the test.
const calls: Readonly<Record<string, () => unknown>> = {
  // @ts-expect-error: a member that does not exist
  createResourceServer: () => createResourceServer({ issuer: 'idp.test', audience: 'a', odd: 1 }),
  // @ts-expect-error: a member that does not exist
  dpop: () => createResourceServer({ issuer: 'idp.test', audience: 'a', dpop: { odd: 1 } }),
  // @ts-expect-error: a member that does not exist
  tokenCache: () => createResourceServer({ issuer: 'idp.test', audience: 'a', tokenCache: { odd: 1 } }),
  clockTolerance: () =>
    // @ts-expect-error: a member that does not exist
    createResourceServer({ issuer: 'idp.test', audience: 'a', clockTolerance: { exp: 1, nbf: 1, odd: 1 } }),
  // @ts-expect-error: a member that does not exist
  issuers: () => createResourceServer({ issuers: [{ issuer: 'https://idp.test/', odd: 1 }], audience: 'a' }),
  // @ts-expect-error: a member that does not exist
  rules: () => createResourceServer({ issuers: [{ issuer: 'https://idp.test/', rules: { odd: 1 } }], audience: 'a' }),
  // @ts-expect-error: a member that does not exist
  createKeySet: () => createKeySet({ issuer: 'https://idp.test/', odd: 1 }),
  // @ts-expect-error: a member that does not exist
  createIntrospection: () => createIntrospection({ ...introspection, odd: 1 }),
  'createIntrospection, an option of key sets': () =>
    // @ts-expect-error: a member that does not exist there
    createIntrospection({ ...introspection, insecure: true }),
  // @ts-expect-error: a member that does not exist
  createMemoryReplayStore: () => createMemoryReplayStore({ odd: 1 }),
  // @ts-expect-error: a member that does not exist
  createRedisReplayStore: () => createRedisReplayStore('redis://127.0.0.1:1', { odd: 1 }),
  // @ts-expect-error: a member that does not exist
  createNonces: () => createNonces({ secret: 'x'.repeat(32), odd: 1 }),
  // @ts-expect-error: a misspelled member
  'createAuthorize of portcullis/express': () => createExpressAuthorize(server, { onRefuse: () => undefined }),
  // @ts-expect-error: a misspelled member
  'answerAccessErrors of portcullis/express': () => answerExpressErrors(server, { onRefuse: () => undefined }),
  // @ts-expect-error: a misspelled member
  'answerAccessErrors of portcullis/hono': () => answerHonoErrors(server, { onRefuse: () => undefined }),
  // @ts-expect-error: a misspelled member
  'createAuthorize of portcullis/fastify': () => createFastifyAuthorize(server, { onRefuse: () => undefined }),
  // @ts-expect-error: a misspelled member
  'createProtect of portcullis/fetch': () => createFetchProtect(server, { onRefuse: () => undefined }),
  // @ts-expect-error: a misspelled member
  'createAuthorize of portcullis/hono': () => createHonoAuthorize(server, { onRefuse: () => undefined }),
  // @ts-expect-error: a misspelled member
  'createProtect of portcullis/node': () => createNodeProtect(server, { onRefuse: () => undefined }),
  // @ts-expect-error: a misspelled member
  createGuard: () => createGuard(server, { onRefuse: () => undefined }),
  'PortcullisModule.forRootAsync': () =>
    // @ts-expect-error: a member that does not exist
    PortcullisModule.forRootAsync({ useFactory: () => ({ resourceServer: server }), odd: 1 }),
  // @ts-expect-error: a misspelled member
  createMcpAuth: () => createMcpAuth(server, { ...mcp, onRefuse: () => undefined }),
  // @ts-expect-error: a member that does not exist
  createTestIssuer: () => createTestIssuer({ odd: 1 }),
  // @ts-expect-error: a member that does not exist
  dpopClient: () => issuer.dpopClient({ odd: 1 }),
  // @ts-expect-error: a misspelled member, without which the proof would be a good one
  proof: () => client.proof({ ...call, flaws: 'malformed_proof' }),
  // @ts-expect-error: a misspelled member
  headers: () => client.headers({ url: 'https://api.test/', scopes: 'a' }),
};

describe('an option that does not exist', () => {
  it.each(Object.entries(calls))('%s → TypeError, at creation', async (_name, create) => {
    await expect((async () => create())()).rejects.toThrow(TypeError);
    await expect((async () => create())()).rejects.toThrow(
      /there is no (?:odd|insecure|onRefuse|flaws|scopes);|entries only under/,
    );
  });

  it.each([null, 7, 'a'])('%j in place of the options → TypeError', (odd) =>
    expect(() => createKeySet(odd as never)).toThrow(/^createKeySet: write the options as an object$/),
  );
});

it('a policy or options of a class, and of another realm → read', () => {
  const scopes = ['read'];
  const policies = [
    new (class {
      get scopes() {
        return scopes;
      }
    })(),
    Object.create({ scopes }),
    runInNewContext("({ scopes: ['read'] })"),
    Object.assign(Object.create(null), { scopes }),
  ];
  for (const policy of policies) expect(namedScopes(policy)).toEqual(scopes);
  for (const none of [{}, Object.create(null), runInNewContext('({})')]) expect(namedScopes(none)).toEqual([]);
  expect(() => createExpressAuthorize(server, new Map() as object)).toThrow(
    /^createAuthorize: write an object with any of/,
  );
});

describe('a name that is nearly one', () => {
  it.each([
    [() => createExpressAuthorize(server, { onRefuse: () => undefined } as object), 'onRefused'],
    [() => createResourceServer({ isuer: 'idp.test', audience: 'api' } as unknown as ResourceServerOptions), 'issuer'],
    [() => anyOf({ scope: ['read'] } as object, {}), 'scopes'],
    [() => anyOf({ roles: ['admin'] } as object, {}), 'permissions'],
    [() => createResourceServer({ issuerBaseURL: 'https://idp.test/', audience: 'api' } as never), 'issuer'],
    [
      () => createResourceServer({ issuer: 'idp.test', audience: 'api', roles: ['admin'] } as never),
      'permissionsClaim',
    ],
    [() => createResourceServer({ domain: 'idp.test', audience: 'api' } as never), 'issuer'],
    [() => createResourceServer({ issuer: 'idp.test', audience: 'api', leeway: 5 } as never), 'clockTolerance'],
    [() => createResourceServer({ issuer: 'idp.test', audience: 'api', publicKey: {} } as never), 'keys'],
    [() => createResourceServer({ issuer: 'idp.test', audience: 'api', agent: {} } as never), 'fetch'],
    [() => createExpressAuthorize(server)({ requiredScopes: ['a'] } as never), 'scopes'],
  ])('%s → is asked about', (create, meant) =>
    expect(create).toThrow(new RegExp(`; write any of .*\\. Did you mean ${meant}\\?$`)),
  );

  it.each([
    ['secret', 'Symmetric keys are not accepted; keys has public ones'],
    ['authRequired', 'Write authorize.optional(policy) at the route'],
    ['requiredScopes', 'It belongs into the policy of a route'],
    ['getToken', 'Tokens are read from the Authorization header only'],
  ])('%s, a member of other packages → %s', (name, hint) => {
    const create = () => createResourceServer({ issuer: 'idp.test', audience: 'api', [name]: 'a' });
    expect(create).toThrow(`there is no ${name}; write any of `);
    expect(create).toThrow(`. ${hint}`);
  });

  it('one that is nearly nothing → is not', () => {
    expect(() => createExpressAuthorize(server, { flavour: 1 } as object)).toThrow(
      /^createAuthorize: there is no flavour; [^?]*$/,
    );
  });
});

it('a list of policies in place of policies → says how they are written', () => {
  const list = [{ scopes: ['read'] }] as unknown as Policy;
  expect(() => anyOf(list)).toThrow(
    /^anyOf: write the policies one behind the other, as in anyOf\(one, other\), and no list$/,
  );
  expect(() => allOf(list)).toThrow(/^allOf: write the policies/);
});

it('options from optional values: a member that is undefined → absent, and every other value is kept', () =>
  expect(omitUndefined({ a: undefined, b: null, c: false, d: 0 })).toStrictEqual({ b: null, c: false, d: 0 }));
