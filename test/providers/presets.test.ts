import { describe, expect, it } from 'vitest';
import { createMemoryReplayStore } from '../../src/dpop/replay.ts';
import type { TokenAlg } from '../../src/jose/algorithms.ts';
import type { JsonObject } from '../../src/jose/json.ts';
import type { Fetch } from '../../src/outbound/http-client.ts';
import type { Policy } from '../../src/policy/policy.ts';
import * as providers from '../../src/providers/index.ts';
import { createResourceServer } from '../../src/resource-server/resource-server.ts';
import type { IssuerRuleOptions, TrustedIssuer } from '../../src/resource-server/trusted-issuer.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { bearer, judge } from '../testing/judge.ts';

const { fillIn } = providers;
const api = 'https://api.example/';
const tenant = '8a1b0c2d-0000-4000-8000-3e4f5a6b7c8d';
const apiClient = '6e74172b-be56-4843-9ff4-e66a39bb12e3';
const client = '98765432-1111-4000-8000-aaaaaaaaaaaa';
const environment = '7b9f0a1c-2222-4000-8000-bbbbbbbbbbbb';

/** A provider as its documentation describes it, under the addresses that it really has. */
interface Provider {
  readonly preset: keyof typeof providers;
  /** As the preset gives it, with rules for whom the tokens are. */
  readonly issuer: TrustedIssuer;
  /** Where the discovery document is, and what it says of issuer and keys. */
  readonly discovery: { readonly url: string; readonly issuer: string; readonly jwksUri: string };
  readonly alg?: TokenAlg;
  /** Members that the keys have or lack. */
  readonly jwk?: JsonObject;
  /** JOSE header and claims of an access token; what is `undefined` is absent. */
  readonly header: JsonObject;
  readonly claims: JsonObject;
  /** Policies that the token satisfies. */
  readonly satisfies: readonly Policy[];
  /** Tokens that are not for this API, and other near misses. */
  readonly refused: readonly (readonly [name: string, claims: JsonObject, reason: string, policy?: Policy])[];
  /** Claims that differ in a token bound to a DPoP key. Default: `cnf` with `jkt` only. */
  readonly boundBy?: (jkt: string) => JsonObject;
}

const own = (rules: IssuerRuleOptions) => rules;
/** Claims of the test kit that the provider does not write. */
const without = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, undefined]));

const cases: readonly Provider[] = [
  {
    preset: 'auth0',
    issuer: fillIn(providers.auth0, { domain: 'tenant.eu.auth0.com' }, own({ audience: api })),
    discovery: {
      url: 'https://tenant.eu.auth0.com/.well-known/openid-configuration',
      issuer: 'https://tenant.eu.auth0.com/',
      jwksUri: 'https://tenant.eu.auth0.com/.well-known/jwks.json',
    },
    header: { typ: 'JWT' },
    claims: {
      ...without('client_id', 'jti'),
      sub: 'auth0|123456',
      aud: [api, 'https://tenant.eu.auth0.com/userinfo'],
      azp: client,
      scope: 'openid profile read:patients',
      permissions: ['read:patients'],
    },
    satisfies: [{ scopes: ['read:patients'] }, { permissions: ['read:patients'] }],
    refused: [
      ['token for /userinfo only', { aud: 'https://tenant.eu.auth0.com/userinfo' }, 'invalid_audience'],
      ['ID token', { aud: client, nonce: 'n', scope: undefined }, 'invalid_audience'],
      ['custom domain', { iss: 'https://login.example/' }, 'invalid_issuer'],
      ['permission that is no scope', { scope: 'openid' }, 'insufficient_scope', { scopes: ['read:patients'] }],
    ],
  },
  {
    preset: 'okta',
    issuer: fillIn(
      providers.okta,
      { domain: 'example.okta.com', server: 'default' },
      own({ audience: 'api://default' }),
    ),
    discovery: {
      url: 'https://example.okta.com/oauth2/default/.well-known/openid-configuration',
      issuer: 'https://example.okta.com/oauth2/default',
      jwksUri: 'https://example.okta.com/oauth2/default/v1/keys',
    },
    header: { typ: undefined },
    claims: {
      ...without('client_id'),
      ver: 1,
      jti: 'AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE',
      sub: 'alice@example.com',
      aud: 'api://default',
      cid: '0oabv6kx4qq6h1U5l0h7',
      uid: '00ujmkLgagxeRrAg20g3',
      scp: ['openid', 'orders:read'],
    },
    satisfies: [{ scopes: ['orders:read'] }],
    refused: [
      [
        'token of the org server',
        { iss: 'https://example.okta.com', aud: 'https://example.okta.com' },
        'invalid_issuer',
      ],
      ['token of another server', { iss: 'https://example.okta.com/oauth2/aus1' }, 'invalid_issuer'],
      ['ID token', { aud: '0oabv6kx4qq6h1U5l0h7', scp: undefined }, 'invalid_audience'],
      ['scopes in scope', { scp: undefined, scope: 'orders:read' }, 'insufficient_scope', { scopes: ['orders:read'] }],
    ],
  },
  {
    preset: 'entraV2',
    issuer: fillIn(providers.entraV2, { tenant }, own({ audience: apiClient })),
    discovery: {
      url: `https://login.microsoftonline.com/${tenant}/v2.0/.well-known/openid-configuration`,
      issuer: `https://login.microsoftonline.com/${tenant}/v2.0`,
      jwksUri: `https://login.microsoftonline.com/${tenant}/discovery/v2.0/keys`,
    },
    jwk: {
      alg: undefined,
      x5t: 'thumbprint',
      x5c: ['certificate'],
      issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
    },
    header: { typ: 'JWT' },
    claims: {
      ...without('client_id', 'jti'),
      aud: apiClient,
      azp: client,
      azpacr: '0',
      oid: 'object',
      tid: tenant,
      uti: 'unique',
      ver: '2.0',
      scp: 'Orders.Read Orders.Write',
      roles: ['Orders.Approve'],
    },
    satisfies: [{ scopes: ['Orders.Read'] }, { permissions: ['Orders.Approve'] }],
    refused: [
      ['token for Graph', { aud: '00000003-0000-0000-c000-000000000000' }, 'invalid_audience'],
      ['token of version 1.0', { iss: `https://sts.windows.net/${tenant}/`, ver: '1.0' }, 'invalid_issuer'],
      ['token of another tenant', { iss: `https://login.microsoftonline.com/${client}/v2.0` }, 'invalid_issuer'],
      ['ID token', { aud: client, scp: undefined }, 'invalid_audience'],
      [
        'token of an application, which has no scp',
        { scp: undefined },
        'insufficient_scope',
        { scopes: ['Orders.Read'] },
      ],
    ],
  },
  {
    preset: 'entraV1',
    issuer: fillIn(providers.entraV1, { tenant }, own({ audience: [`api://${apiClient}`, apiClient] })),
    discovery: {
      // Not at the issuer, and so not asked for.
      url: `https://login.microsoftonline.com/${tenant}/.well-known/openid-configuration`,
      issuer: `https://sts.windows.net/${tenant}/`,
      jwksUri: 'https://login.microsoftonline.com/common/discovery/keys',
    },
    jwk: { alg: undefined, x5t: 'thumbprint', x5c: ['certificate'] },
    header: { typ: 'JWT', x5t: 'thumbprint' },
    claims: {
      ...without('client_id', 'jti'),
      aud: `api://${apiClient}`,
      appid: client,
      appidacr: '1',
      oid: 'object',
      tid: tenant,
      ver: '1.0',
      scp: 'Orders.Read',
      roles: ['Orders.Approve'],
    },
    satisfies: [{ scopes: ['Orders.Read'] }, { permissions: ['Orders.Approve'] }],
    refused: [
      ['token for Graph', { aud: 'https://graph.microsoft.com' }, 'invalid_audience'],
      [
        'token of version 2.0',
        { iss: `https://login.microsoftonline.com/${tenant}/v2.0`, ver: '2.0' },
        'invalid_issuer',
      ],
      [
        'token of another tenant, signed with the common keys',
        { iss: `https://sts.windows.net/${client}/` },
        'invalid_issuer',
      ],
    ],
  },
  {
    preset: 'keycloak',
    issuer: fillIn(providers.keycloak, { host: 'id.example:8443', realm: 'main' }, own({ audience: 'orders' })),
    discovery: {
      url: 'https://id.example:8443/realms/main/.well-known/openid-configuration',
      issuer: 'https://id.example:8443/realms/main',
      jwksUri: 'https://id.example:8443/realms/main/protocol/openid-connect/certs',
    },
    header: { typ: 'JWT' },
    claims: {
      ...without('client_id'),
      jti: 'onrtac:3c1f9a2e',
      aud: ['orders', 'account'],
      typ: 'Bearer',
      azp: 'web',
      sid: 'session',
      'allowed-origins': ['https://web.example'],
      realm_access: { roles: ['approver', 'offline_access'] },
      resource_access: { account: { roles: ['view-profile'] } },
      scope: 'profile orders:read',
    },
    satisfies: [{ scopes: ['orders:read'] }, { permissions: ['approver'] }],
    refused: [
      ['token without an Audience mapper', { aud: 'account' }, 'invalid_audience'],
      ['token that has no aud at all', { aud: undefined }, 'invalid_audience'],
      ['ID token that names the API', { typ: 'ID', at_hash: 'hash' }, 'not_an_access_token'],
      ['refresh token', { typ: 'Refresh' }, 'not_an_access_token'],
      ['token of another realm', { iss: 'https://id.example:8443/realms/master' }, 'invalid_issuer'],
      ['role of a client', {}, 'missing_permission', { permissions: ['view-profile'] }],
      ['token without the client scope basic', { sub: undefined }, 'malformed_sub'],
      ['bound to a key by jwk', { cnf: { jwk: {}, 'kc-jkt-type': 'DPoP' } }, 'unsupported_cnf'],
      ['only the type of a binding', { cnf: { 'kc-jkt-type': 'DPoP' } }, 'unsupported_cnf'],
    ],
    // Keycloak 26.7.
    boundBy: (jkt) => ({ typ: 'DPoP', cnf: { jkt, 'kc-jkt-type': 'DPoP' } }),
  },
  {
    preset: 'cognito',
    issuer: fillIn(
      providers.cognito,
      { region: 'eu-central-1', userPool: 'eu-central-1_Ab12Cd34E' },
      own({ clientIds: ['4bq1r3webclient'] }),
    ),
    discovery: {
      url: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab12Cd34E/.well-known/openid-configuration',
      issuer: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab12Cd34E',
      jwksUri: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab12Cd34E/.well-known/jwks.json',
    },
    header: { typ: undefined },
    claims: {
      aud: undefined,
      client_id: '4bq1r3webclient',
      token_use: 'access',
      scope: 'openid orders/read',
      username: 'alice',
      'cognito:groups': ['approvers'],
      origin_jti: 'origin',
      event_id: 'event',
      version: 2,
    },
    satisfies: [{ scopes: ['orders/read'] }, { permissions: ['approvers'] }],
    refused: [
      ['ID token', { aud: '4bq1r3webclient', client_id: undefined, token_use: 'id' }, 'invalid_audience'],
      ['ID token without its aud', { token_use: 'id' }, 'not_an_access_token'],
      ['token of another client of the pool', { client_id: '7zz9other' }, 'unaccepted_client'],
      ['token that is bound to a resource', { aud: api }, 'invalid_audience'],
      [
        'token of another pool',
        { iss: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Other' },
        'invalid_issuer',
      ],
    ],
  },
  {
    preset: 'zitadel',
    issuer: fillIn(
      providers.zitadel,
      { domain: 'example-ab12cd.zitadel.cloud' },
      own({ audience: '344374183645413380' }),
    ),
    discovery: {
      url: 'https://example-ab12cd.zitadel.cloud/.well-known/openid-configuration',
      issuer: 'https://example-ab12cd.zitadel.cloud',
      jwksUri: 'https://example-ab12cd.zitadel.cloud/oauth/v2/keys',
    },
    header: { typ: 'JWT' },
    claims: {
      aud: ['344374183645413381@orders', '344374183645413380'],
      sub: '345377791925026818',
      client_id: '344374183645413381@orders',
      'urn:zitadel:iam:org:project:344374183645413380:roles': {
        approver: { '344373908297744388': 'example.zitadel.cloud' },
      },
    },
    satisfies: [{}],
    refused: [
      ['issuer with a slash', { iss: 'https://example-ab12cd.zitadel.cloud/' }, 'invalid_issuer'],
      ['token of another project', { aud: ['999@other', '999'] }, 'invalid_audience'],
      ['ID token, whose aud has the project as well', { at_hash: 'hash' }, 'not_an_access_token'],
      ['scopes, which its tokens do not name', {}, 'insufficient_scope', { scopes: ['openid'] }],
    ],
  },
  {
    preset: 'authentik',
    issuer: fillIn(
      providers.authentik,
      { host: 'auth.example', application: 'orders' },
      own({ audience: 'Kx7orders' }),
    ),
    discovery: {
      url: 'https://auth.example/application/o/orders/.well-known/openid-configuration',
      issuer: 'https://auth.example/application/o/orders/',
      jwksUri: 'https://auth.example/application/o/orders/jwks/',
    },
    header: { typ: 'JWT' },
    claims: {
      ...without('client_id', 'jti'),
      aud: 'Kx7orders',
      azp: 'Kx7orders',
      uid: 'random',
      auth_time: 1_700_000_000,
      acr: 'goauthentik.io/providers/oauth2/default',
      groups: ['approvers'],
    },
    satisfies: [{ permissions: ['approvers'] }],
    refused: [
      ['token of another application', { iss: 'https://auth.example/application/o/other/' }, 'invalid_issuer'],
      ['token of another provider', { aud: 'other' }, 'invalid_audience'],
      ['ID token, whose aud is the same', { at_hash: 'hash', azp: undefined, uid: undefined }, 'not_an_access_token'],
      ['issuer without a slash', { iss: 'https://auth.example/application/o/orders' }, 'invalid_issuer'],
    ],
  },
  {
    preset: 'logto',
    issuer: fillIn(providers.logto, { domain: 'tenant.logto.app' }, own({ audience: api })),
    discovery: {
      url: 'https://tenant.logto.app/oidc/.well-known/openid-configuration',
      issuer: 'https://tenant.logto.app/oidc',
      jwksUri: 'https://tenant.logto.app/oidc/jwks',
    },
    alg: 'ES384',
    header: { typ: 'at+jwt' },
    claims: { aud: api, client_id: client, scope: 'read write' },
    satisfies: [{ scopes: ['read'] }],
    refused: [
      ['token for an organization', { aud: 'urn:logto:organization:org1' }, 'invalid_audience'],
      ['ID token', { aud: client, at_hash: 'hash', scope: undefined }, 'invalid_audience'],
      ['issuer without its path', { iss: 'https://tenant.logto.app/' }, 'invalid_issuer'],
    ],
  },
  {
    preset: 'pingOne',
    issuer: fillIn(providers.pingOne, { host: 'auth.pingone.eu', environment }, own({ audience: api })),
    discovery: {
      url: `https://auth.pingone.eu/${environment}/as/.well-known/openid-configuration`,
      issuer: `https://auth.pingone.eu/${environment}/as`,
      jwksUri: `https://auth.pingone.eu/${environment}/as/jwks`,
    },
    header: { typ: 'at+jwt', x5t: 'thumbprint' },
    claims: { aud: [api], client_id: client, scope: 'orders:read', sid: 'session', acr: 'Single_Factor' },
    satisfies: [{ scopes: ['orders:read'] }],
    refused: [
      ['token for the API of PingOne', { aud: ['https://api.pingone.eu'] }, 'invalid_audience'],
      ['ID token', { aud: client, at_hash: 'hash' }, 'invalid_audience'],
      ['token of another environment', { iss: `https://auth.pingone.eu/${tenant}/as` }, 'invalid_issuer'],
      ['token of a client, without sub', { sub: undefined }, 'malformed_sub'],
    ],
  },
];

describe.each(cases)(
  '$preset',
  ({
    issuer,
    discovery,
    alg = 'RS256',
    jwk = {},
    header,
    claims,
    satisfies,
    refused,
    boundBy = (jkt) => ({ cnf: { jkt } }),
  }) => {
    const kit = createTestIssuer({ issuer: discovery.issuer, alg });
    const asked: string[] = [];
    const documents = (): Readonly<Record<string, object>> => ({
      [discovery.url]: { issuer: discovery.issuer, jwks_uri: discovery.jwksUri },
      [discovery.jwksUri]: { keys: kit.jwks.keys.map((key) => ({ ...key, ...jwk })) },
    });
    const fetch: Fetch = async (url) => {
      asked.push(url);
      const document = documents()[url];
      return Response.json(document ?? {}, { status: document === undefined ? 404 : 200 });
    };
    // Each case has whom its tokens are for among its own rules.
    const server = createResourceServer({
      issuers: [issuer as TrustedIssuer & { rules: { audience: string } }],
      fetch,
      dpop: { replay: createMemoryReplayStore({ since: 0 }) },
    });
    const tokenOf = (changes: JsonObject = {}) => bearer(kit.token({ ...claims, ...changes }, header));

    it('its keys are found where they are', async () => {
      await server.ready();
      expect(asked).toEqual(issuer.jwksUri === undefined ? [discovery.url, discovery.jwksUri] : [discovery.jwksUri]);
    });

    it('its access token is admitted', async () => {
      expect(await judge(server, tokenOf())).toBe('accepted');
      for (const policy of satisfies) expect(await judge(server, tokenOf(), policy)).toBe('accepted');
      expect(await judge(server, tokenOf({ exp: 1 }))).toBe('expired');
    });

    it('its bound access token is admitted with the proof of its key only', async () => {
      const [client, other] = [kit.dpopClient(), kit.dpopClient()];
      const token = kit.token({ ...claims, ...boundBy(client.jkt) }, header);
      const url = 'https://api.test/messages';
      expect(await judge(server, { headers: client.headers({ url, token }) })).toBe('accepted');
      expect(await judge(server, { headers: other.headers({ url, token }) })).toBe('proof_key_mismatch');
      expect(await judge(server, bearer(token))).toBe('bound_token_as_bearer');
    });

    const nearMisses = refused.map(([name, changes, reason, policy]) => ({ name, changes, reason, policy }));
    it.each(nearMisses)('$name → $reason', async ({ changes, reason, policy }) => {
      expect(await judge(server, tokenOf(changes), policy)).toBe(reason);
    });
  },
);

it('there is a case for each preset', () => {
  const presets = Object.entries(providers).filter(([, value]) => typeof value === 'object');
  expect(cases.map(({ preset }) => preset).toSorted()).toEqual(presets.map(([name]) => name).toSorted());
});

describe('fillIn', () => {
  it('gives plain data, which JSON keeps as it is', () => {
    const issuer = fillIn(providers.entraV1, { tenant }, { audience: apiClient });
    expect(JSON.parse(JSON.stringify(issuer))).toEqual(issuer);
    expect(issuer.rules).toEqual({ scopeClaim: 'scp', permissionsClaim: 'roles', audience: apiClient });
  });

  it('rules of the caller are laid over those of the preset', () => {
    const rules = { permissionsClaim: ['resource_access', 'orders', 'roles'] } as const;
    expect(fillIn(providers.keycloak, { host: 'id.example', realm: 'main' }, rules).rules).toEqual(rules);
  });

  it.each<[string, () => unknown, RegExp]>([
    // @ts-expect-error: a value is missing
    ['a missing value', () => fillIn(providers.keycloak, { host: 'id.example' }), /^Keycloak: write realm/],
    [
      'another name',
      // @ts-expect-error: there is no such name
      () => fillIn(providers.zitadel, { domain: 'a', realm: 'b' }),
      /there is no realm; write any of domain/,
    ],
    [
      'a scheme',
      () => fillIn(providers.auth0, { domain: 'https://a.auth0.com' }),
      /^Auth0: write domain without a scheme/,
    ],
    ['a slash', () => fillIn(providers.auth0, { domain: 'a.auth0.com/' }), /^Auth0: write domain/],
    ['a path', () => fillIn(providers.keycloak, { host: 'a', realm: 'b/../c' }), /^Keycloak: write realm/],
    ['dots only', () => fillIn(providers.keycloak, { host: 'a', realm: '..' }), /^Keycloak: write realm/],
    ['credentials', () => fillIn(providers.logto, { domain: 'user:s3cret@a' }), /^Logto: write domain/],
    ['nothing', () => fillIn(providers.logto, { domain: '' }), /^Logto: write domain/],
    ['common, which no token names', () => fillIn(providers.entraV2, { tenant: 'common' }), /directory \(tenant\) id/],
    [
      'a domain of a tenant',
      () => fillIn(providers.entraV1, { tenant: 'a.onmicrosoft.com' }),
      /directory \(tenant\) id/,
    ],
  ])('%s → TypeError that says the fix, and repeats nothing', (_name, fill, message) => {
    expect(fill).toThrow(TypeError);
    expect(fill).toThrow(message);
    expect(fill).not.toThrow(/s3cret/);
  });
});
