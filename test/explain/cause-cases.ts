import type { Certainty } from '../../src/explain/explained-check.ts';
import { type Facts, type InForce, optionLabels, type Seen } from '../../src/explain/facts.ts';

export const now = 1_800_000_000;
const issuer = 'https://idp.example/';
const audience = 'https://api.example/';
const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl';

/** What differs from a call that is good in everything. */
export interface Difference
  extends Partial<Omit<Seen, 'claims' | 'header'>>,
    Partial<Omit<InForce, 'labels'>>,
    Pick<Facts, 'isKeyKnown' | 'wanted' | 'held' | 'keysFetchedAt'> {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly externalUrl?: string;
  readonly pinnedUrl?: string;
}

/** One cause: a call that has it, and calls that are refused for the same reason and do not have it. */
export interface CauseCase {
  readonly id: string;
  readonly reason: string;
  /** `certain`: its fix can be tried. */
  readonly certainty: Certainty;
  readonly appears: Difference;
  readonly not: readonly Difference[];
}

/** The facts of a good call with these differences. */
export function makeFacts({ claims, header, ...given }: Difference): Facts {
  const { externalUrl, pinnedUrl, isKeyKnown, wanted, held, keysFetchedAt, ...rest } = given;
  const usual = { iss: issuer, aud: audience, sub: 'alice', iat: now - 3600, exp: now + 3600, scope: 'read:messages' };
  const token = rest.token ?? jwt;
  return {
    seen: {
      kind: 'curl',
      authorization: `Bearer ${token}`,
      token,
      url: 'https://api.example/orders',
      cookie: null,
      otherHeaders: [],
      header: { alg: 'RS256', typ: 'at+jwt', kid: 'key-1', ...header },
      claims: { ...usual, ...claims },
      proofClaims: {},
      ...rest,
    },
    force: {
      issuers: [issuer],
      audiences: [audience],
      mode: 'allowed',
      algorithms: ['RS256'],
      scopes: ['read:messages'],
      permissions: [],
      domainHasScheme: false,
      ...rest,
      labels: optionLabels,
    },
    ...{ wanted, held, keysFetchedAt },
    externalUrl,
    pinnedUrl,
    isKeyKnown,
    now,
  };
}

const noHeader = { authorization: null, token: '' } as const;
const signature = (bytes: number): string => Buffer.alloc(bytes, 'x').toString('base64url');
const signed = (bytes: number): string => `eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.${signature(bytes)}`;
const entraIssuer = 'https://login.microsoftonline.com/tenant/v2.0';
const oktaOrg = 'https://dev-1.okta.com';

/** A case for each cause and reason that matters; the table of docs/causes.md is built from them. */
export const causeCases: readonly CauseCase[] = [
  {
    id: 'audience_slash',
    reason: 'invalid_audience',
    certainty: 'certain',
    appears: { claims: { aud: 'https://api.example' } },
    not: [
      { claims: { aud: 'https://other.example' } },
      { claims: { aud: undefined } },
      { claims: { aud: 'https://API.example' } },
    ],
  },
  {
    id: 'audience_case',
    reason: 'invalid_audience',
    certainty: 'certain',
    appears: { claims: { aud: ['https://API.example/'] } },
    not: [{ claims: { aud: 'https://api.example' } }, { claims: { aud: 'https://other.example/' } }],
  },
  {
    id: 'issuer_slash',
    reason: 'invalid_issuer',
    certainty: 'certain',
    appears: { claims: { iss: 'https://idp.example' } },
    not: [{ claims: { iss: 'https://idp.example/other' } }, { claims: { iss: 1 } }],
  },
  {
    id: 'issuer_host_alias',
    reason: 'invalid_issuer',
    certainty: 'likely',
    appears: {
      claims: { iss: 'http://keycloak:8080/realms/main' },
      ...{ issuers: ['https://id.example/realms/main'], isKeyKnown: true },
    },
    not: [
      { claims: { iss: 'http://keycloak:8080/realms/main' }, issuers: ['https://id.example/realms/main'] },
      {
        claims: { iss: 'http://keycloak:8080/realms/other' },
        ...{ issuers: ['https://id.example/realms/main'], isKeyKnown: true },
      },
    ],
  },
  {
    id: 'entra_v1_issuer',
    reason: 'invalid_issuer',
    certainty: 'certain',
    appears: { claims: { iss: 'https://sts.windows.net/tenant/' }, issuers: [entraIssuer] },
    not: [
      { claims: { iss: 'https://sts.windows.net/other/' }, issuers: ['https://sts.windows.net/tenant/'] },
      { claims: { iss: entraIssuer }, issuers: [issuer] },
    ],
  },
  {
    id: 'entra_graph_token',
    reason: 'invalid_signature',
    certainty: 'likely',
    appears: { claims: { aud: '00000003-0000-0000-c000-000000000000' }, header: { nonce: 'x' } },
    not: [{ claims: { aud: audience }, header: { nonce: 'x' } }],
  },
  {
    id: 'okta_org_server',
    reason: 'unknown_kid',
    certainty: 'likely',
    appears: { claims: { iss: oktaOrg }, issuers: [oktaOrg] },
    not: [{ claims: { iss: `${oktaOrg}/oauth2/default` }, issuers: [`${oktaOrg}/oauth2/default`] }],
  },
  {
    id: 'cognito_no_audience',
    reason: 'invalid_audience',
    certainty: 'certain',
    appears: { claims: { aud: undefined, token_use: 'access', client_id: 'app' } },
    not: [{ claims: { aud: undefined } }, { claims: { aud: 'other', token_use: 'access' } }],
  },
  {
    id: 'keycloak_account_audience',
    reason: 'invalid_audience',
    certainty: 'certain',
    appears: { claims: { iss: 'https://id.example/realms/main', aud: 'account' } },
    not: [{ claims: { aud: ['account', 'other'] } }, { claims: { aud: 'accounts' } }],
  },
  {
    id: 'other_audience',
    reason: 'invalid_audience',
    certainty: 'likely',
    appears: { claims: { aud: 'https://other.example/' } },
    // Each has a cause that says more.
    not: [{ claims: { aud: undefined } }, { claims: { aud: 'account' } }, { claims: { aud: 'x', at_hash: 'h' } }],
  },
  {
    id: 'scope_in_scp',
    reason: 'insufficient_scope',
    certainty: 'certain',
    appears: { claims: { scope: undefined, scp: ['read:messages', 'openid'] } },
    not: [
      { claims: { scope: undefined, scp: ['openid'] } },
      { claims: { scope: 'openid', scp: 'read:messages' } },
      { claims: { scope: undefined } },
    ],
  },
  {
    id: 'roles_instead_of_scope',
    reason: 'insufficient_scope',
    certainty: 'likely',
    appears: { claims: { scope: undefined, realm_access: { roles: ['read:messages'] } } },
    not: [
      { claims: { scope: 'openid' } },
      { claims: { scope: undefined, roles: [], scp: ['read:messages'] } },
      { claims: { scope: 'openid', roles: ['admin'] } },
    ],
  },
  {
    id: 'scope_with_commas',
    reason: 'insufficient_scope',
    certainty: 'certain',
    appears: { claims: { scope: 'openid,read:messages' } },
    not: [{ claims: { scope: 'openid,profile' } }, { claims: { scope: 'openid profile' } }],
  },
  {
    id: 'scope_not_granted',
    reason: 'insufficient_scope',
    certainty: 'certain',
    appears: { claims: { scope: 'openid' } },
    not: [
      { claims: { scope: undefined, realm_access: { roles: ['read:messages'] } } },
      { claims: { scope: undefined, scp: ['read:messages'] } },
      { claims: { scope: 'openid,read:messages' } },
    ],
  },
  {
    id: 'scope_not_granted',
    reason: 'insufficient_scope',
    certainty: 'likely',
    appears: { claims: { scope: undefined, permissions: ['read:messages'] } },
    not: [{ claims: { scope: ['read:messages'] } }],
  },
  {
    id: 'scope_as_list',
    reason: 'malformed_scope',
    certainty: 'certain',
    appears: { claims: { scope: ['read:messages'] } },
    not: [{ claims: { scope: 1 } }],
  },
  {
    id: 'claim_of_condition',
    reason: 'condition_not_met',
    certainty: 'certain',
    appears: { wanted: { tenant: 'acme' } },
    not: [{ wanted: undefined }, { wanted: {} }],
  },
  {
    id: 'machine_token_without_sub',
    reason: 'malformed_sub',
    certainty: 'certain',
    appears: { claims: { sub: undefined, client_id: 'job' } },
    not: [{ claims: { sub: 1, client_id: 'job' } }, { claims: { sub: undefined } }],
  },
  {
    id: 'milliseconds',
    reason: 'malformed_exp',
    certainty: 'certain',
    appears: { claims: { exp: now * 1000 } },
    not: [{ claims: { exp: 'tomorrow' } }, { claims: { exp: now } }],
  },
  {
    id: 'clock_behind',
    reason: 'issued_in_future',
    certainty: 'likely',
    appears: { claims: { iat: now + 600 } },
    not: [{ claims: { iat: now * 1000 } }, { claims: { iat: now + 86_400 } }],
  },
  {
    id: 'clock_behind',
    reason: 'proof_too_old',
    certainty: 'likely',
    appears: { proofClaims: { iat: now - 400 } },
    not: [{ proofClaims: {} }],
  },
  {
    id: 'clock_ahead',
    reason: 'proof_in_future',
    certainty: 'certain',
    appears: { proofClaims: { iat: now + 600 } },
    not: [{ proofClaims: {} }, { proofClaims: { iat: now - 1 } }],
  },
  {
    id: 'token_expired',
    reason: 'expired',
    certainty: 'certain',
    appears: { claims: { iat: now - 7200, exp: now - 3600 } },
    not: [{ claims: { exp: now + 1 } }],
  },
  {
    id: 'placeholder_token',
    reason: 'opaque_token',
    certainty: 'likely',
    appears: { token: 'undefined' },
    not: [{ token: 'kQ3xV9bTq0Zp7LsW2nYd' }, { token: 'undefinedness' }],
  },
  {
    id: 'scheme_doubled',
    reason: 'malformed_encoding',
    certainty: 'certain',
    appears: { token: `Bearer ${jwt}` },
    not: [{ token: jwt }, { token: `bearer${jwt}` }],
  },
  {
    id: 'scheme_doubled',
    reason: 'unsupported_scheme',
    certainty: 'certain',
    appears: { authorization: `Bearer: ${jwt}`, token: jwt },
    not: [{ authorization: 'Basic YTpi', token: 'YTpi' }],
  },
  {
    id: 'scheme_missing',
    reason: 'unsupported_scheme',
    certainty: 'certain',
    appears: { authorization: jwt, token: '' },
    not: [{ authorization: 'Basic YTpi', token: 'YTpi' }],
  },
  {
    id: 'token_quoted',
    reason: 'malformed_encoding',
    certainty: 'certain',
    appears: { token: `"${jwt}"` },
    not: [{ token: jwt }, { token: '"undefined"' }],
  },
  {
    id: 'token_truncated',
    reason: 'invalid_signature',
    certainty: 'likely',
    appears: { token: signed(200) },
    not: [
      { token: signed(256) },
      { token: signed(258) },
      { token: signed(384) },
      { token: signed(200), header: { alg: 'XX' } },
    ],
  },
  {
    id: 'token_truncated',
    reason: 'malformed_token',
    certainty: 'likely',
    appears: { token: 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOi' },
    not: [{ token: 'not.jwt' }, { token: 'eyJhbGciOiJSUzI1NiJ9.a.b.c' }],
  },
  {
    id: 'token_truncated',
    reason: 'malformed_encoding',
    certainty: 'likely',
    appears: { token: jwt.slice(1) },
    not: [{ token: 'a.b.c' }, { token: ` ${jwt.slice(1)}` }],
  },
  {
    id: 'token_in_query',
    reason: 'missing_credentials',
    certainty: 'certain',
    appears: { ...noHeader, url: `https://api.example/orders?access_token=${jwt}` },
    not: [
      { ...noHeader, url: 'https://api.example/orders?page=2' },
      { ...noHeader, url: undefined },
    ],
  },
  {
    id: 'token_in_cookie',
    reason: 'missing_credentials',
    certainty: 'certain',
    appears: { ...noHeader, cookie: `theme=dark; session=${jwt}` },
    not: [{ ...noHeader, cookie: 'theme=dark' }, noHeader],
  },
  {
    id: 'token_in_other_header',
    reason: 'missing_credentials',
    certainty: 'certain',
    appears: { ...noHeader, otherHeaders: [['X-Access-Token', jwt]] },
    not: [noHeader],
  },
  {
    id: 'header_stripped',
    reason: 'missing_credentials',
    certainty: 'likely',
    appears: noHeader,
    not: [
      { ...noHeader, cookie: `session=${jwt}` },
      { authorization: 'Bearer', token: '' },
      { ...noHeader, kind: 'authorization' },
    ],
  },
  {
    id: 'id_token',
    reason: 'invalid_audience',
    certainty: 'likely',
    appears: { claims: { aud: 'my-app', at_hash: 'x', nonce: 'x' } },
    not: [{ claims: { aud: 'my-app' } }, { claims: { aud: 'my-app', nonce: 'x' }, header: { typ: 'at+jwt' } }],
  },
  {
    id: 'id_token',
    reason: 'invalid_audience',
    certainty: 'likely',
    appears: { claims: { aud: 'my-app', nonce: 'x' }, header: { typ: 'JWT' } },
    not: [{ claims: { aud: 'my-app' }, header: { typ: 'JWT' } }],
  },
  {
    id: 'opaque_no_audience',
    reason: 'opaque_token',
    certainty: 'likely',
    appears: { token: 'kQ3xV9bTq0Zp7LsW2nYdkQ3xV9bTq0Zp' },
    not: [{ token: 'undefined' }, { token: 'short' }],
  },
  {
    id: 'url_behind_proxy',
    reason: 'proof_url_mismatch',
    certainty: 'likely',
    appears: { proofClaims: { htu: 'https://api.example/orders' }, externalUrl: 'http://api.example/orders' },
    not: [
      { proofClaims: { htu: 'https://api.example/other' }, externalUrl: 'https://api.example/orders' },
      { proofClaims: { htu: 'https://api.example/orders' } },
      { proofClaims: { htu: '::' }, externalUrl: 'https://api.example/orders' },
      // The client created the proof without the port.
      { proofClaims: { htu: 'http://localhost/orders' }, externalUrl: 'http://localhost:8000/orders' },
    ],
  },
  {
    id: 'url_behind_proxy',
    reason: 'proof_url_mismatch',
    certainty: 'certain',
    appears: {
      proofClaims: { htu: 'https://api.example/v1/orders' },
      externalUrl: 'https://other.example/orders',
      pinnedUrl: 'https://other.example',
    },
    not: [
      {
        proofClaims: { htu: 'https://other.example/else' },
        externalUrl: 'https://other.example/orders',
        pinnedUrl: 'https://other.example',
      },
      { proofClaims: { htu: '::' }, externalUrl: 'https://api.example/orders', pinnedUrl: 'https://api.example' },
    ],
  },
  {
    id: 'bound_token_dpop_off',
    reason: 'bound_token_as_bearer',
    certainty: 'certain',
    appears: { mode: 'off', claims: { cnf: { jkt: 'x' } } },
    not: [{ mode: 'allowed', claims: { cnf: { jkt: 'x' } } }],
  },
  {
    id: 'bound_token_needs_dpop',
    reason: 'bound_token_as_bearer',
    certainty: 'certain',
    appears: { mode: 'allowed', claims: { cnf: { jkt: 'x' } } },
    not: [{ mode: 'off', claims: { cnf: { jkt: 'x' } } }],
  },
  {
    id: 'other_environment',
    reason: 'invalid_issuer',
    certainty: 'likely',
    appears: { claims: { iss: 'https://dev.eu.auth0.com/' }, issuers: ['https://prod.eu.auth0.com/'] },
    not: [
      { claims: { iss: 'https://other.example.org/' } },
      {
        claims: { iss: 'http://keycloak:8080/realms/main' },
        ...{ issuers: ['https://id.example/realms/main'], isKeyKnown: true },
      },
    ],
  },
  {
    id: 'other_environment',
    reason: 'unknown_kid',
    certainty: 'likely',
    appears: { claims: { iat: now - 5 } },
    not: [{ claims: { iss: oktaOrg }, issuers: [oktaOrg] }],
  },
  {
    id: 'key_rotated',
    reason: 'unknown_kid',
    certainty: 'likely',
    appears: { claims: { iat: now - 3600 } },
    not: [{ claims: { iat: undefined } }, { claims: { iss: oktaOrg }, issuers: [oktaOrg] }],
  },
  {
    id: 'key_rotated',
    reason: 'unknown_kid',
    certainty: 'likely',
    appears: { claims: { iat: now - 5 }, keysFetchedAt: now - 60 },
    not: [{ claims: { iat: now - 5 }, keysFetchedAt: now }, { claims: { iat: now - 5 } }],
  },
  {
    id: 'permission_not_granted',
    reason: 'missing_permission',
    certainty: 'certain',
    appears: { held: ['read:orders'], permissions: ['read:orders', 'write:orders'] },
    not: [],
  },
  {
    id: 'domain_with_scheme',
    reason: 'invalid_issuer',
    certainty: 'likely',
    appears: { domainHasScheme: true, issuers: [] },
    not: [{ issuers: ['https://other.example/'] }],
  },
  {
    id: 'algorithm_not_allowed',
    reason: 'unsupported_alg',
    certainty: 'certain',
    appears: { header: { alg: 'ES256' } },
    not: [{ header: { alg: 'HS256' } }, { header: { alg: 'RS256' } }, { header: {} }],
  },
  {
    id: 'symmetric_algorithm',
    reason: 'unsupported_alg',
    certainty: 'likely',
    appears: { header: { alg: 'HS256' } },
    not: [{ header: { alg: 'ES256' } }, { header: { alg: 1 } }],
  },
  {
    id: 'encrypted',
    reason: 'encrypted_token',
    certainty: 'likely',
    appears: { token: 'a.b.c.d.e' },
    not: [{ token: 'a.b.c' }],
  },
  {
    id: 'refresh_token',
    reason: 'opaque_token',
    certainty: 'likely',
    appears: { token: 'v1.MjA4ZjQ3YjYtNzA2Yy00YjM2LTk5NzI' },
    not: [{ token: 'v1.short' }],
  },
  {
    id: 'refresh_token',
    reason: 'unsupported_alg',
    certainty: 'likely',
    appears: { claims: { typ: 'Refresh' }, header: { alg: 'HS512' } },
    not: [{ claims: { typ: 'Bearer' } }],
  },
  {
    id: 'google_token',
    reason: 'opaque_token',
    certainty: 'likely',
    appears: { token: 'ya29.a0AfB_byC3d4E5f6' },
    not: [{ token: 'ya30.a0AfB' }],
  },
  {
    id: 'github_token',
    reason: 'opaque_token',
    certainty: 'likely',
    appears: { token: `ghp_${'a1B2c3D4e5'.repeat(3)}` },
    not: [{ token: 'ghp_short' }],
  },
  {
    id: 'api_key',
    reason: 'opaque_token',
    certainty: 'likely',
    appears: { token: 'sk_live_a1B2c3D4a1B2c3D4' },
    not: [{ token: 'skating' }],
  },
  {
    id: 'kubernetes_token',
    reason: 'invalid_issuer',
    certainty: 'likely',
    appears: { claims: { iss: 'https://kubernetes.default.svc', 'kubernetes.io': {} } },
    not: [{ claims: { iss: issuer, 'kubernetes.io': {} } }],
  },
  {
    id: 'firebase_token',
    reason: 'invalid_issuer',
    certainty: 'likely',
    appears: { claims: { iss: 'https://securetoken.google.com/app' } },
    not: [{ claims: { iss: 'https://securetoken.google.com/app' }, issuers: ['https://securetoken.google.com/app'] }],
  },
  {
    id: 'percent_encoded',
    reason: 'unsupported_scheme',
    certainty: 'certain',
    appears: { authorization: `Bearer%20${jwt}` },
    not: [{ authorization: `JWT ${jwt}` }],
  },
  {
    id: 'hidden_character',
    reason: 'unsupported_scheme',
    certainty: 'certain',
    appears: { authorization: `Bearer\u00a0${jwt}` },
    not: [{ authorization: `JWT ${jwt}` }],
  },
  {
    id: 'issuer_host_alias',
    reason: 'invalid_issuer',
    certainty: 'likely',
    appears: { claims: { iss: 'https://id.example/' }, isKeyKnown: true },
    not: [
      { claims: { iss: 'https://localhost:9443/' }, issuers: ['https://localhost:9444/'], isKeyKnown: false },
      { claims: { iss: 'https://id.example/' } },
    ],
  },
  {
    id: 'other_environment',
    reason: 'invalid_issuer',
    certainty: 'likely',
    appears: { claims: { iss: 'https://localhost:9443/' }, issuers: ['https://localhost:9444/'], isKeyKnown: false },
    not: [{ claims: { iss: 'https://localhost:9443/' }, issuers: ['https://localhost:9444/'], isKeyKnown: true }],
  },
  {
    id: 'scheme_missing',
    reason: 'unsupported_scheme',
    certainty: 'certain',
    appears: { authorization: `JWT ${jwt}` },
    not: [{ authorization: 'Basic dTpw' }, { authorization: `Bearer: ${jwt}` }],
  },
  {
    id: 'encrypted',
    reason: 'encrypted_token',
    certainty: 'likely',
    appears: { token: 'eyJ.a.b.c.d', header: { alg: 'dir' } },
    not: [{ token: 'eyJ.a.b.c...' }],
  },
  {
    id: 'certificate_bound_token',
    reason: 'unsupported_cnf',
    certainty: 'likely',
    appears: { claims: { cnf: { 'x5t#S256': 'x' } } },
    not: [{ claims: { cnf: { jwk: {} } } }, { claims: { cnf: 'x' } }],
  },
  {
    id: 'audience_is_scope',
    reason: 'invalid_audience',
    certainty: 'likely',
    appears: { claims: { aud: 'read:messages' } },
    not: [{ claims: { aud: ['read:messages', 'https://other.example/'] } }, { claims: { aud: undefined } }],
  },
  {
    id: 'machine_token_without_sub',
    reason: 'malformed_sub',
    certainty: 'certain',
    appears: { claims: { sub: null, azp: 'job' } },
    not: [{ claims: { sub: 'alice', azp: 'job' } }],
  },
  {
    id: 'placeholder_token',
    reason: 'missing_credentials',
    certainty: 'likely',
    appears: { authorization: 'Bearer ', token: '' },
    not: [noHeader, { authorization: 'Basic', token: '' }],
  },
];
