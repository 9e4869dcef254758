import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import type { JsonObject } from '../../src/core/jose/json.ts';
import type { TokenAlg } from '../../src/core/jose/jws.ts';
import type { Fetch } from '../../src/core/outbound/http-client.ts';
import { anyOf } from '../../src/core/policy/checked-policy.ts';
import type { Policy } from '../../src/core/policy/policy.ts';
import type { IssuerRuleOptions, TrustedIssuer } from '../../src/core/resource-server/issuers/trusted-issuer.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import * as providers from '../../src/providers/index.ts';
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
  /** JOSE header of an access token; what is `undefined` is absent. Default: `typ` with `JWT`. */
  readonly header?: JsonObject;
  /** Its claims; what is `undefined` is absent. */
  readonly claims: JsonObject;
  /** Policies that the token satisfies, except the empty one. */
  readonly satisfies?: readonly Policy<unknown>[];
  /** Tokens that are not for this API, and other near misses. */
  readonly refused?: readonly (readonly [name: string, claims: JsonObject, reason: string, policy?: Policy<unknown>])[];
  /** Claims that differ in a token bound to a DPoP key. Default: `cnf` with `jkt` only. */
  readonly boundBy?: (jkt: string) => JsonObject;
}

/** Discovery at the issuer (OpenID Connect Discovery §4). */
const publish = (issuer: string, jwksUri: string): Provider['discovery'] => ({
  url: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
  issuer,
  jwksUri,
});
const own = (rules: IssuerRuleOptions) => rules;
/** Claims of the test kit that the provider does not write. */
const without = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, undefined]));

const cases: readonly Provider[] = [
  {
    preset: 'auth0',
    issuer: fillIn(providers.auth0, { domain: 'tenant.eu.auth0.com' }, own({ audience: api })),
    discovery: publish('https://tenant.eu.auth0.com/', 'https://tenant.eu.auth0.com/.well-known/jwks.json'),
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
      ['permission that is no scope', { scope: 'openid' }, 'insufficient_scope', { scopes: ['read:patients'] }],
    ],
  },
  {
    preset: 'okta',
    issuer: fillIn(
      providers.okta,
      { domain: 'example.okta.com', server: 'default' },
      own({ audience: 'api://default', clientIds: ['0oabv6kx4qq6h1U5l0h7'] }),
    ),
    discovery: publish('https://example.okta.com/oauth2/default', 'https://example.okta.com/oauth2/default/v1/keys'),
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
      ['scopes in scope', { scp: undefined, scope: 'orders:read' }, 'insufficient_scope', { scopes: ['orders:read'] }],
      ['token of another client', { cid: 'other', client_id: '0oabv6kx4qq6h1U5l0h7' }, 'unaccepted_client'],
    ],
  },
  {
    preset: 'entraV2',
    issuer: fillIn(providers.entraV2, { tenant }, own({ audience: apiClient })),
    discovery: publish(
      `https://login.microsoftonline.com/${tenant}/v2.0`,
      `https://login.microsoftonline.com/${tenant}/discovery/v2.0/keys`,
    ),
    jwk: {
      alg: undefined,
      x5t: 'thumbprint',
      x5c: ['certificate'],
      issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
    },
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
      [
        'token of an application, which has no scp',
        { scp: undefined },
        'insufficient_scope',
        { scopes: ['Orders.Read'] },
      ],
      [
        'token of any application of the tenant, which has no role',
        { scp: undefined, roles: undefined, idtyp: 'app' },
        'insufficient_scope',
        anyOf({ scopes: ['Orders.Read'] }, { permissions: ['Orders.Approve'] }),
      ],
    ],
  },
  {
    preset: 'entraV1',
    issuer: fillIn(
      providers.entraV1,
      { tenant },
      own({ audience: [`api://${apiClient}`, apiClient], clientIds: [client] }),
    ),
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
  },
  {
    preset: 'keycloak',
    issuer: fillIn(providers.keycloak, { host: 'id.example:8443', realm: 'main' }, own({ audience: 'orders' })),
    discovery: publish(
      'https://id.example:8443/realms/main',
      'https://id.example:8443/realms/main/protocol/openid-connect/certs',
    ),
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
    discovery: publish(
      'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab12Cd34E',
      'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab12Cd34E/.well-known/jwks.json',
    ),
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
    ],
  },
  {
    preset: 'zitadel',
    issuer: fillIn(
      providers.zitadel,
      { domain: 'example-ab12cd.zitadel.cloud' },
      own({ audience: '344374183645413380' }),
    ),
    discovery: publish('https://example-ab12cd.zitadel.cloud', 'https://example-ab12cd.zitadel.cloud/oauth/v2/keys'),
    claims: {
      aud: ['344374183645413381@orders', '344374183645413380'],
      sub: '345377791925026818',
      client_id: '344374183645413381@orders',
      'urn:zitadel:iam:org:project:344374183645413380:roles': {
        approver: { '344373908297744388': 'example.zitadel.cloud' },
      },
    },
    refused: [
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
    discovery: publish('https://auth.example/application/o/orders/', 'https://auth.example/application/o/orders/jwks/'),
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
      ['ID token, whose aud is the same', { at_hash: 'hash', azp: undefined, uid: undefined }, 'not_an_access_token'],
    ],
  },
  {
    preset: 'logto',
    issuer: fillIn(providers.logto, { domain: 'tenant.logto.app' }, own({ audience: api })),
    discovery: publish('https://tenant.logto.app/oidc', 'https://tenant.logto.app/oidc/jwks'),
    alg: 'ES384',
    header: { typ: 'at+jwt' },
    claims: { aud: api, client_id: client, scope: 'read write' },
    satisfies: [{ scopes: ['read'] }],
  },
  {
    preset: 'pingOne',
    issuer: fillIn(providers.pingOne, { host: 'auth.pingone.eu', environment }, own({ audience: api })),
    discovery: publish(`https://auth.pingone.eu/${environment}/as`, `https://auth.pingone.eu/${environment}/as/jwks`),
    header: { typ: 'at+jwt', x5t: 'thumbprint' },
    claims: { aud: [api], client_id: client, scope: 'orders:read', sid: 'session', acr: 'Single_Factor' },
    satisfies: [{ scopes: ['orders:read'] }],
    refused: [['token of a client, without sub', { sub: undefined }, 'malformed_sub']],
  },
  {
    preset: 'clerk',
    issuer: fillIn(providers.clerk, { domain: 'clerk.example.com' }, own({ clientIds: ['https://app.example.com'] })),
    // The preset has the address of the keys.
    discovery: publish('https://clerk.example.com', 'https://clerk.example.com/.well-known/jwks.json'),
    header: { typ: 'JWT', cat: 'cl_B7d4PD111AAA' },
    claims: {
      ...without('aud', 'client_id', 'jti', 'scope'),
      sub: 'user_2bWZ9kq8nT',
      sid: 'sess_2bWZ9kq8nT',
      azp: 'https://app.example.com',
      fva: [7, -1],
      sts: 'active',
      v: 2,
      o: { id: 'org_2bWZ9kq8nT', rol: 'admin', slg: 'acme' },
    },
    refused: [
      ['token for another origin', { azp: 'https://evil.example' }, 'unaccepted_client'],
      ['token without azp', { azp: undefined }, 'unaccepted_client'],
      ['token of a template with aud', { aud: 'hasura' }, 'invalid_audience'],
    ],
  },
  {
    preset: 'betterAuth',
    issuer: fillIn(providers.betterAuth, { host: 'auth.example' }, own({ audience: 'https://auth.example' })),
    discovery: publish('https://auth.example', 'https://auth.example/api/auth/jwks'),
    alg: 'EdDSA',
    header: { typ: undefined },
    claims: {
      ...without('client_id', 'jti', 'scope'),
      sub: 'pZ3kq8nTYbWm',
      aud: 'https://auth.example',
      id: 'pZ3kq8nTYbWm',
      email: 'alice@example.com',
      emailVerified: true,
    },
    refused: [['scopes, which its tokens do not have', {}, 'insufficient_scope', { scopes: ['read'] }]],
  },
  {
    preset: 'firebase',
    issuer: fillIn(providers.firebase, { project: 'orders-4f2a1' }, own({ audience: 'orders-4f2a1' })),
    discovery: publish(
      'https://securetoken.google.com/orders-4f2a1',
      'https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com',
    ),
    claims: {
      ...without('client_id', 'jti', 'scope'),
      sub: '7hG4kq8nTYbWm',
      aud: 'orders-4f2a1',
      user_id: '7hG4kq8nTYbWm',
      auth_time: 1_700_000_000,
      firebase: { identities: {}, sign_in_provider: 'password' },
    },
  },
  {
    preset: 'workOs',
    issuer: fillIn(providers.workOs, { client: 'client_01HBEQKA6K4Q' }, own({ clientIds: ['client_01HBEQKA6K4Q'] })),
    discovery: publish(
      'https://api.workos.com/user_management/client_01HBEQKA6K4Q',
      'https://api.workos.com/sso/jwks/client_01HBEQKA6K4Q',
    ),
    header: { typ: undefined },
    claims: {
      ...without('aud', 'scope'),
      client_id: 'client_01HBEQKA6K4Q',
      sub: 'user_01HBEQKA6K4QJAS93VPE39W1JT',
      act: { sub: 'admin@foocorp.com' },
      org_id: 'org_01HRDMC6CM357W30QMHMQ96Q0S',
      role: 'member',
      permissions: ['posts:read', 'posts:write'],
      sid: 'session_01HQSXZGF8FHF7A9ZZFCW4387R',
    },
    satisfies: [{ permissions: ['posts:read'] }, { actor: 'required' }],
    refused: [
      ['token of a user, where an administrator impersonates', {}, 'actor_not_allowed', { actor: 'forbidden' }],
      ['token for a resource', { aud: api }, 'invalid_audience'],
      ['token of another application, with the same keys', { client_id: 'client_01OTHER' }, 'unaccepted_client'],
      ['token of another environment', { iss: 'https://api.workos.com' }, 'invalid_issuer'],
    ],
  },
  {
    preset: 'kinde',
    issuer: fillIn(providers.kinde, { domain: 'example.kinde.com' }, own({ audience: api })),
    discovery: publish('https://example.kinde.com', 'https://example.kinde.com/.well-known/jwks'),
    claims: {
      ...without('client_id', 'scope'),
      sub: 'kp_0ba7c433e5d648cf992621ce99d42817',
      aud: [api],
      azp: 'd4d3c5b74e064badb9625a4aa6241bcc',
      org_code: 'org_ba4a2311eb1',
      permissions: ['orders:approve'],
      scp: ['openid', 'orders:read'],
    },
    satisfies: [{ scopes: ['orders:read'] }, { permissions: ['orders:approve'] }],
    refused: [
      ['token without an API', { aud: [] }, 'invalid_audience'],
      ['token of a machine, without sub', { sub: undefined, gty: ['client_credentials'] }, 'malformed_sub'],
      ['ID token that names the API', { at_hash: 'hash' }, 'not_an_access_token'],
    ],
  },
  {
    preset: 'ory',
    issuer: fillIn(providers.ory, { host: 'slug.projects.oryapis.com' }, own({ audience: api })),
    discovery: publish('https://slug.projects.oryapis.com', 'https://slug.projects.oryapis.com/.well-known/jwks.json'),
    claims: { ...without('scope'), aud: [api], client_id: client, ext: {}, scp: ['openid', 'orders:read'] },
    satisfies: [{ scopes: ['orders:read'] }],
    refused: [
      ['token without a requested audience', { aud: [] }, 'invalid_audience'],
      ['scopes in scope', { scp: undefined, scope: 'orders:read' }, 'insufficient_scope', { scopes: ['orders:read'] }],
    ],
  },
  {
    preset: 'githubActions',
    issuer: fillIn(
      providers.githubActions,
      {},
      own({ audience: api, policy: { claims: z.looseObject({ repository_owner_id: z.literal('9919') }) } }),
    ),
    discovery: publish(
      'https://token.actions.githubusercontent.com',
      'https://token.actions.githubusercontent.com/.well-known/jwks',
    ),
    header: { typ: 'JWT', x5t: 'thumbprint' },
    claims: {
      ...without('client_id', 'scope'),
      sub: 'repo:octo-org/octo-repo:ref:refs/heads/main',
      aud: api,
      ref: 'refs/heads/main',
      repository: 'octo-org/octo-repo',
      repository_owner: 'octo-org',
      repository_owner_id: '9919',
      event_name: 'push',
      job_workflow_ref: 'octo-org/octo-repo/.github/workflows/deploy.yml@refs/heads/main',
    },
    satisfies: [{ claims: z.looseObject({ ref: z.literal('refs/heads/main') }) }],
    refused: [
      ['token of another owner for this API', { repository_owner_id: '666' }, 'unaccepted_claims'],
      ['token without an owner', { repository_owner_id: undefined }, 'unaccepted_claims'],
      [
        'token of a pull request',
        { ref: 'refs/pull/7/merge' },
        'unaccepted_claims',
        { claims: z.looseObject({ ref: z.literal('refs/heads/main') }) },
      ],
    ],
  },
  {
    preset: 'gitLab',
    issuer: fillIn(
      providers.gitLab,
      { host: 'gitlab.com' },
      own({ audience: api, policy: { claims: z.looseObject({ namespace_id: z.literal('72') }) } }),
    ),
    discovery: publish('https://gitlab.com', 'https://gitlab.com/oauth/discovery/keys'),
    claims: {
      ...without('client_id', 'scope'),
      sub: 'project_path:my-group/my-project:ref_type:branch:ref:main',
      aud: api,
      namespace_id: '72',
      namespace_path: 'my-group',
      project_id: '20',
      project_path: 'my-group/my-project',
      ref: 'main',
      ref_type: 'branch',
      ref_protected: 'true',
    },
    satisfies: [{ claims: z.looseObject({ ref_protected: z.literal('true') }) }],
    refused: [['token of another group for this API', { namespace_id: '666' }, 'unaccepted_claims']],
  },
  {
    preset: 'kubernetes',
    issuer: fillIn(providers.kubernetes, { host: 'kubernetes.default.svc.cluster.local' }, own({ audience: 'orders' })),
    discovery: publish('https://kubernetes.default.svc.cluster.local', 'https://172.20.0.3:6443/openid/v1/jwks'),
    header: { typ: undefined },
    claims: {
      ...without('client_id', 'scope'),
      sub: 'system:serviceaccount:shop:web',
      aud: ['orders'],
      'kubernetes.io': {
        namespace: 'shop',
        pod: { name: 'web-7d9c', uid: 'uid-1' },
        serviceaccount: { name: 'web', uid: 'uid-2' },
      },
    },
    satisfies: [{ claims: z.looseObject({ 'kubernetes.io': z.looseObject({ namespace: z.literal('shop') }) }) }],
    refused: [
      [
        'token of another namespace',
        { 'kubernetes.io': { namespace: 'other' } },
        'unaccepted_claims',
        { claims: z.looseObject({ 'kubernetes.io': z.looseObject({ namespace: z.literal('shop') }) }) },
      ],
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
    header = { typ: 'JWT' },
    claims,
    satisfies = [],
    refused = [],
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

    it('a token of another issuer, or for another audience → refused', async () => {
      const { issuer: named } = discovery;
      for (const iss of [`${named}x`, named.endsWith('/') ? named.slice(0, -1) : `${named}/`])
        expect(await judge(server, tokenOf({ iss }))).toBe('invalid_issuer');
      expect(await judge(server, tokenOf({ aud: 'https://other.example/' }))).toBe('invalid_audience');
    });

    const nearMisses = refused.map(([name, changes, reason, policy]) => ({ name, changes, reason, policy }));
    it.each(nearMisses)('$name → $reason', async ({ changes, reason, policy }) =>
      expect(await judge(server, tokenOf(changes), policy)).toBe(reason),
    );
  },
);

it('there is a case for each preset', () => {
  const presets = Object.entries<unknown>(providers).filter(([, value]) => typeof value === 'object');
  expect(cases.map(({ preset }) => preset).toSorted()).toEqual(presets.map(([name]) => name).toSorted());
});

describe('tokens of Supabase, without a preset', () => {
  const iss = 'https://abcdefghijklmnopqrst.supabase.co/auth/v1';
  const kit = createTestIssuer({ issuer: iss, audience: 'authenticated', alg: 'ES256' });
  const server = createResourceServer({ issuers: [kit], audience: 'authenticated', algorithms: ['ES256'] });
  const header = { typ: 'JWT' };
  const claims = {
    ...without('client_id', 'jti', 'scope'),
    ...{ aud: 'authenticated', role: 'authenticated', aal: 'aal1', session_id: environment, is_anonymous: false },
    ...{ email: 'alice@example.com', app_metadata: { provider: 'email' }, amr: [{ method: 'password' }] },
  };

  it.each<[string, string, JsonObject, JsonObject]>([
    ['of an asymmetric key', 'accepted', {}, {}],
    ['of the shared secret', 'unsupported_alg', {}, { alg: 'HS256', kid: undefined }],
    ['of an anonymous key of the project', 'invalid_issuer', { iss: 'supabase', aud: undefined, role: 'anon' }, {}],
    ['of another project', 'invalid_issuer', { iss: iss.replace('abc', 'xyz') }, {}],
  ])('%s → %s', async (_name, expected, changes, ofHeader) => {
    const token = kit.token({ ...claims, ...changes }, { ...header, ...ofHeader });
    expect(await judge(server, bearer(token))).toBe(expected);
  });
});

describe('findTenants', () => {
  const other = '11111111-2222-4333-8444-555555555555';
  const issuerOf = (id: string) => `https://login.microsoftonline.com/${id}/v2.0`;
  const kits = new Map([tenant, other].map((id) => [id, createTestIssuer({ issuer: issuerOf(id) })]));
  const asked: string[] = [];
  const fetch: Fetch = async (url) => {
    asked.push(url);
    const [, id = '', path] = /^https:\/\/login\.microsoftonline\.com\/([^/]+)\/(.*)$/.exec(url) ?? [];
    const jwks_uri = `https://login.microsoftonline.com/${id}/discovery/v2.0/keys`;
    return Response.json(
      path?.startsWith('discovery') ? (kits.get(id)?.jwks ?? {}) : { issuer: issuerOf(id), jwks_uri },
    );
  };
  const open = (accepts: (values: { readonly tenant: string }) => boolean | Promise<boolean>) =>
    createResourceServer({ issuers: fillInTenants(accepts), fetch });
  const fillInTenants = (accepts: Parameters<typeof open>[0]) =>
    providers.findTenants(providers.entraV2, accepts, { audience: apiClient });
  const token = (id: string, claims: JsonObject = {}) =>
    bearer(kits.get(id)?.token({ aud: apiClient, ...claims }) ?? '');

  it.each<[string, (values: { readonly tenant: string }) => boolean | Promise<boolean>, JsonObject, string]>([
    ['accepted tenant', ({ tenant: id }) => id === tenant, {}, 'accepted'],
    ['accepted tenant, a promise', async ({ tenant: id }) => id === tenant, {}, 'accepted'],
    ['other audience', () => true, { aud: api }, 'invalid_audience'],
    ['unknown tenant', ({ tenant: id }) => id === other, {}, 'invalid_issuer'],
    ['1 instead of true', () => 1 as unknown as boolean, {}, 'invalid_issuer'],
    ['iss of another tenant', () => true, { iss: issuerOf(other) }, 'unknown_kid'],
    ['iss with another host', () => true, { iss: `https://evil.example/${tenant}/v2.0` }, 'invalid_issuer'],
    ['iss with a suffix', () => true, { iss: `${issuerOf(tenant)}/` }, 'invalid_issuer'],
    ['iss with a dot replaced', () => true, { iss: issuerOf(tenant).replace('login.', 'loginx') }, 'invalid_issuer'],
    ['iss with common', () => true, { iss: issuerOf('common') }, 'invalid_issuer'],
  ])('%s → %4$s', async (_name, accepts, claims, outcome) =>
    expect(await judge(open(accepts), token(tenant, claims))).toBe(outcome),
  );

  it('unknown tenants → no fetch', async () => {
    asked.length = 0;
    expect(
      await judge(
        open(() => false),
        token(other),
      ),
    ).toBe('invalid_issuer');
    expect(asked).toEqual([]);
  });

  it('the same tenant → the same issuer object', async () => {
    const { find } = fillInTenants(() => true);
    const request = { method: 'GET', url: 'https://api.test/', headers: new Headers() };
    const [first, second] = [await find(issuerOf(tenant), request), await find(issuerOf(tenant), request)];
    expect(first?.rules).toMatchObject({ scopeClaim: 'scp', audience: apiClient });
    expect(second).toBe(first);
  });

  it.each<[string, object]>([
    ['a promise of rules', Promise.resolve({ audience: api, policy: { scopes: ['a'] } })],
    ['a map of rules', new Map([['policy', { scopes: ['a'] }]])],
    ['rules that are inherited', Object.create({ policy: { scopes: ['a'] } })],
    ['null', null as unknown as object], // as without types
  ])('%s, whose policy would be lost → TypeError', (_name, rules) => {
    const refused = /^rules: write a plain object; await a promise first$/;
    expect(() => providers.fillIn(providers.githubActions, {}, rules)).toThrow(refused);
    expect(() => providers.findTenants(providers.auth0, () => true, rules)).toThrow(refused);
  });

  it('a preset with one issuer for all → TypeError', () =>
    expect(() => providers.findTenants(providers.githubActions, () => true, { audience: api })).toThrow(/use fillIn/));
});

describe('fillIn', () => {
  it('gives plain data, which JSON keeps unchanged', () => {
    const issuer = fillIn(providers.entraV1, { tenant }, { audience: apiClient });
    expect(JSON.parse(JSON.stringify(issuer))).toEqual(issuer);
    const rules = { scopeClaim: 'scp', permissionsClaim: 'roles', clientIdClaim: 'appid', audience: apiClient };
    expect(issuer.rules).toEqual(rules);
  });

  it('rules of the caller override the preset’s', () => {
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

it('findTenants with 10,000 tenants: a tenant again → no other one is evicted', async () => {
  const { find } = providers.findTenants(providers.entraV2, () => true, { audience: 'https://api.example/' });
  const read = (index: number) => {
    const tenant = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
    return find(`https://login.microsoftonline.com/${tenant}/v2.0`, undefined as never); // the request is not read
  };
  const first = await read(0);
  for (let index = 1; index < 10_000; index++) await read(index);
  await read(5000);
  expect(await read(0)).toBe(first);
  expect(first).toBeDefined();
});
