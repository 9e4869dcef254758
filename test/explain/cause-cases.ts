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
      preflightOrigin: null,
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
const internal = 'http://keycloak:8080/realms/main';
const realm = 'https://id.example/realms/main';
const local = 'https://localhost:9443/';
const otherLocal = 'https://localhost:9444/';

const caseOf =
  (certainty: Certainty) =>
  (id: string, reason: string, appears: Difference, not: readonly Difference[]): CauseCase => ({
    id,
    reason,
    certainty,
    appears,
    not,
  });
const certain = caseOf('certain');
const likely = caseOf('likely');

/** A case for each cause and reason that matters; the table of docs/causes.md is built from them. */
export const causeCases: readonly CauseCase[] = [
  certain('audience_slash', 'invalid_audience', { claims: { aud: 'https://api.example' } }, [
    { claims: { aud: 'https://other.example' } },
    { claims: { aud: undefined } },
    { claims: { aud: 'https://API.example' } },
  ]),
  certain('audience_case', 'invalid_audience', { claims: { aud: ['https://API.example/'] } }, [
    { claims: { aud: 'https://api.example' } },
    { claims: { aud: 'https://other.example/' } },
  ]),
  certain('issuer_slash', 'invalid_issuer', { claims: { iss: 'https://idp.example' } }, [
    { claims: { iss: 'https://idp.example/other' } },
    { claims: { iss: 1 } },
  ]),
  likely('issuer_host_alias', 'invalid_issuer', { claims: { iss: internal }, issuers: [realm], isKeyKnown: true }, [
    { claims: { iss: internal }, issuers: [realm] },
    { claims: { iss: 'http://keycloak:8080/realms/other' }, issuers: [realm], isKeyKnown: true },
  ]),
  certain(
    'entra_v1_issuer',
    'invalid_issuer',
    { claims: { iss: 'https://sts.windows.net/tenant/' }, issuers: [entraIssuer] },
    [
      { claims: { iss: 'https://sts.windows.net/other/' }, issuers: ['https://sts.windows.net/tenant/'] },
      { claims: { iss: entraIssuer }, issuers: [issuer] },
    ],
  ),
  likely(
    'entra_graph_token',
    'invalid_signature',
    { claims: { aud: '00000003-0000-0000-c000-000000000000' }, header: { nonce: 'x' } },
    [{ claims: { aud: audience }, header: { nonce: 'x' } }],
  ),
  likely('okta_org_server', 'unknown_kid', { claims: { iss: oktaOrg }, issuers: [oktaOrg] }, [
    { claims: { iss: `${oktaOrg}/oauth2/default` }, issuers: [`${oktaOrg}/oauth2/default`] },
  ]),
  certain(
    'cognito_no_audience',
    'invalid_audience',
    { claims: { aud: undefined, token_use: 'access', client_id: 'app' } },
    [{ claims: { aud: undefined } }, { claims: { aud: 'other', token_use: 'access' } }],
  ),
  certain('keycloak_account_audience', 'invalid_audience', { claims: { iss: realm, aud: 'account' } }, [
    { claims: { aud: ['account', 'other'] } },
    { claims: { aud: 'accounts' } },
  ]),
  // Each has a cause that says more.
  likely('other_audience', 'invalid_audience', { claims: { aud: 'https://other.example/' } }, [
    { claims: { aud: undefined } },
    { claims: { aud: 'account' } },
    { claims: { aud: 'x', at_hash: 'h' } },
  ]),
  certain('scope_in_scp', 'insufficient_scope', { claims: { scope: undefined, scp: ['read:messages', 'openid'] } }, [
    { claims: { scope: undefined, scp: ['openid'] } },
    { claims: { scope: 'openid', scp: 'read:messages' } },
    { claims: { scope: undefined } },
  ]),
  likely(
    'roles_instead_of_scope',
    'insufficient_scope',
    { claims: { scope: undefined, realm_access: { roles: ['read:messages'] } } },
    [
      { claims: { scope: 'openid' } },
      { claims: { scope: undefined, roles: [], scp: ['read:messages'] } },
      { claims: { scope: 'openid', roles: ['admin'] } },
    ],
  ),
  certain('scope_with_commas', 'insufficient_scope', { claims: { scope: 'openid,read:messages' } }, [
    { claims: { scope: 'openid,profile' } },
    { claims: { scope: 'openid profile' } },
  ]),
  certain('scope_not_granted', 'insufficient_scope', { claims: { scope: 'openid' } }, [
    { claims: { scope: undefined, realm_access: { roles: ['read:messages'] } } },
    { claims: { scope: undefined, scp: ['read:messages'] } },
    { claims: { scope: 'openid,read:messages' } },
  ]),
  likely('scope_not_granted', 'insufficient_scope', { claims: { scope: undefined, permissions: ['read:messages'] } }, [
    { claims: { scope: ['read:messages'] } },
  ]),
  certain('scope_as_list', 'malformed_scope', { claims: { scope: ['read:messages'] } }, [{ claims: { scope: 1 } }]),
  certain('claim_of_condition', 'condition_not_met', { wanted: { tenant: 'acme' } }, [
    { wanted: undefined },
    { wanted: {} },
  ]),
  certain('machine_token_without_sub', 'malformed_sub', { claims: { sub: undefined, client_id: 'job' } }, [
    { claims: { sub: 1, client_id: 'job' } },
    { claims: { sub: undefined } },
  ]),
  certain('milliseconds', 'malformed_exp', { claims: { exp: now * 1000 } }, [
    { claims: { exp: 'tomorrow' } },
    { claims: { exp: now } },
  ]),
  likely('clock_behind', 'issued_in_future', { claims: { iat: now + 600 } }, [
    { claims: { iat: now * 1000 } },
    { claims: { iat: now + 86_400 } },
  ]),
  likely('clock_behind', 'proof_too_old', { proofClaims: { iat: now - 400 } }, [{ proofClaims: {} }]),
  certain('clock_ahead', 'proof_in_future', { proofClaims: { iat: now + 600 } }, [
    { proofClaims: {} },
    { proofClaims: { iat: now - 1 } },
  ]),
  certain('token_expired', 'expired', { claims: { iat: now - 7200, exp: now - 3600 } }, [{ claims: { exp: now + 1 } }]),
  likely('placeholder_token', 'opaque_token', { token: 'undefined' }, [
    { token: 'kQ3xV9bTq0Zp7LsW2nYd' },
    { token: 'undefinedness' },
  ]),
  certain('scheme_doubled', 'malformed_encoding', { token: `Bearer ${jwt}` }, [
    { token: jwt },
    { token: `bearer${jwt}` },
  ]),
  certain('scheme_doubled', 'unsupported_scheme', { authorization: `Bearer: ${jwt}`, token: jwt }, [
    { authorization: 'Basic YTpi', token: 'YTpi' },
  ]),
  certain('scheme_missing', 'unsupported_scheme', { authorization: jwt, token: '' }, [
    { authorization: 'Basic YTpi', token: 'YTpi' },
  ]),
  certain('token_quoted', 'malformed_encoding', { token: `"${jwt}"` }, [{ token: jwt }, { token: '"undefined"' }]),
  certain('token_quoted', 'malformed_encoding', { token: `<${jwt}>` }, [{ token: '<token>' }, { token: `<${jwt}` }]),
  likely('token_truncated', 'invalid_signature', { token: signed(200) }, [
    { token: signed(256) },
    { token: signed(258) },
    { token: signed(384) },
    { token: signed(200), header: { alg: 'XX' } },
  ]),
  likely('token_truncated', 'malformed_token', { token: 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOi' }, [
    { token: 'not.jwt' },
    { token: 'eyJhbGciOiJSUzI1NiJ9.a.b.c' },
  ]),
  likely('token_truncated', 'malformed_encoding', { token: jwt.slice(1) }, [
    { token: 'a.b.c' },
    { token: ` ${jwt.slice(1)}` },
  ]),
  certain(
    'token_in_query',
    'missing_credentials',
    { ...noHeader, url: `https://api.example/orders?access_token=${jwt}` },
    [
      { ...noHeader, url: 'https://api.example/orders?page=2' },
      { ...noHeader, url: '' },
    ],
  ),
  certain('token_in_cookie', 'missing_credentials', { ...noHeader, cookie: `theme=dark; session=${jwt}` }, [
    { ...noHeader, cookie: 'theme=dark' },
    noHeader,
  ]),
  certain('token_in_other_header', 'missing_credentials', { ...noHeader, otherHeaders: [['X-Access-Token', jwt]] }, [
    noHeader,
  ]),
  likely('preflight', 'missing_credentials', { ...noHeader, preflightOrigin: 'https://app.example' }, [noHeader]),
  likely('header_stripped', 'missing_credentials', noHeader, [
    { ...noHeader, preflightOrigin: 'https://app.example' },
    { ...noHeader, cookie: `session=${jwt}` },
    { authorization: 'Bearer', token: '' },
    { ...noHeader, kind: 'authorization' },
  ]),
  likely('id_token', 'invalid_audience', { claims: { aud: 'my-app', at_hash: 'x', nonce: 'x' } }, [
    { claims: { aud: 'my-app' } },
    { claims: { aud: 'my-app', nonce: 'x' }, header: { typ: 'at+jwt' } },
  ]),
  likely('id_token', 'invalid_audience', { claims: { aud: 'my-app', nonce: 'x' }, header: { typ: 'JWT' } }, [
    { claims: { aud: 'my-app' }, header: { typ: 'JWT' } },
  ]),
  likely('opaque_no_audience', 'opaque_token', { token: 'kQ3xV9bTq0Zp7LsW2nYdkQ3xV9bTq0Zp' }, [
    { token: 'undefined' },
    { token: 'short' },
  ]),
  likely(
    'url_behind_proxy',
    'proof_url_mismatch',
    { proofClaims: { htu: 'https://api.example/orders' }, externalUrl: 'http://api.example/orders' },
    [
      { proofClaims: { htu: 'https://api.example/other' }, externalUrl: 'https://api.example/orders' },
      { proofClaims: { htu: 'https://api.example/orders' } },
      { proofClaims: { htu: '::' }, externalUrl: 'https://api.example/orders' },
      // The client created the proof without the port.
      { proofClaims: { htu: 'http://localhost/orders' }, externalUrl: 'http://localhost:8000/orders' },
    ],
  ),
  certain(
    'url_behind_proxy',
    'proof_url_mismatch',
    {
      proofClaims: { htu: 'https://api.example/v1/orders' },
      externalUrl: 'https://other.example/orders',
      pinnedUrl: 'https://other.example',
    },
    [
      {
        proofClaims: { htu: 'https://other.example/else' },
        externalUrl: 'https://other.example/orders',
        pinnedUrl: 'https://other.example',
      },
      { proofClaims: { htu: '::' }, externalUrl: 'https://api.example/orders', pinnedUrl: 'https://api.example' },
    ],
  ),
  certain('bound_token_dpop_off', 'bound_token_as_bearer', { mode: 'off', claims: { cnf: { jkt: 'x' } } }, [
    { mode: 'allowed', claims: { cnf: { jkt: 'x' } } },
  ]),
  certain('bound_token_needs_dpop', 'bound_token_as_bearer', { mode: 'allowed', claims: { cnf: { jkt: 'x' } } }, [
    { mode: 'off', claims: { cnf: { jkt: 'x' } } },
  ]),
  likely(
    'other_environment',
    'invalid_issuer',
    { claims: { iss: 'https://dev.eu.auth0.com/' }, issuers: ['https://prod.eu.auth0.com/'] },
    [
      { claims: { iss: 'https://other.example.org/' } },
      { claims: { iss: internal }, issuers: [realm], isKeyKnown: true },
    ],
  ),
  likely('other_environment', 'unknown_kid', { claims: { iat: now - 5 } }, [
    { claims: { iss: oktaOrg }, issuers: [oktaOrg] },
  ]),
  likely('key_rotated', 'unknown_kid', { claims: { iat: now - 3600 } }, [
    { claims: { iat: undefined } },
    { claims: { iss: oktaOrg }, issuers: [oktaOrg] },
  ]),
  likely('key_rotated', 'unknown_kid', { claims: { iat: now - 5 }, keysFetchedAt: now - 60 }, [
    { claims: { iat: now - 5 }, keysFetchedAt: now },
    { claims: { iat: now - 5 } },
  ]),
  certain(
    'permission_not_granted',
    'missing_permission',
    { held: ['read:orders'], permissions: ['read:orders', 'write:orders'] },
    [],
  ),
  likely('domain_with_scheme', 'invalid_issuer', { domainHasScheme: true, issuers: [] }, [
    { issuers: ['https://other.example/'] },
  ]),
  certain('algorithm_not_allowed', 'unsupported_alg', { header: { alg: 'ES256' } }, [
    { header: { alg: 'HS256' } },
    { header: { alg: 'RS256' } },
    { header: {} },
  ]),
  likely('symmetric_algorithm', 'malformed_token', { header: { alg: 'none' }, token: jwt.replace(/[^.]*$/, '') }, [
    { token: jwt.replace(/[^.]*$/, '') },
    { header: { alg: 'HS256' }, token: jwt.replace(/[^.]*$/, '') },
  ]),
  likely('symmetric_algorithm', 'unsupported_alg', { header: { alg: 'HS256' } }, [
    { header: { alg: 'ES256' } },
    { header: { alg: 1 } },
  ]),
  likely('encrypted', 'encrypted_token', { token: 'a.b.c.d.e' }, [{ token: 'a.b.c' }]),
  likely('refresh_token', 'opaque_token', { token: 'v1.MjA4ZjQ3YjYtNzA2Yy00YjM2LTk5NzI' }, [{ token: 'v1.short' }]),
  likely('refresh_token', 'unsupported_alg', { claims: { typ: 'Refresh' }, header: { alg: 'HS512' } }, [
    { claims: { typ: 'Bearer' } },
  ]),
  likely('google_token', 'opaque_token', { token: 'ya29.a0AfB_byC3d4E5f6' }, [{ token: 'ya30.a0AfB' }]),
  likely('github_token', 'opaque_token', { token: `ghp_${'a1B2c3D4e5'.repeat(3)}` }, [{ token: 'ghp_short' }]),
  likely('api_key', 'opaque_token', { token: 'sk_live_a1B2c3D4a1B2c3D4' }, [{ token: 'skating' }]),
  likely(
    'kubernetes_token',
    'invalid_issuer',
    { claims: { iss: 'https://kubernetes.default.svc', 'kubernetes.io': {} } },
    [{ claims: { iss: issuer, 'kubernetes.io': {} } }],
  ),
  likely('firebase_token', 'invalid_issuer', { claims: { iss: 'https://securetoken.google.com/app' } }, [
    { claims: { iss: 'https://securetoken.google.com/app' }, issuers: ['https://securetoken.google.com/app'] },
  ]),
  certain('percent_encoded', 'unsupported_scheme', { authorization: `Bearer%20${jwt}` }, [
    { authorization: `JWT ${jwt}` },
  ]),
  certain('hidden_character', 'unsupported_scheme', { authorization: `Bearer\u00a0${jwt}` }, [
    { authorization: `JWT ${jwt}` },
  ]),
  likely('issuer_host_alias', 'invalid_issuer', { claims: { iss: 'https://id.example/' }, isKeyKnown: true }, [
    { claims: { iss: local }, issuers: [otherLocal], isKeyKnown: false },
    { claims: { iss: 'https://id.example/' } },
  ]),
  likely('other_environment', 'invalid_issuer', { claims: { iss: local }, issuers: [otherLocal], isKeyKnown: false }, [
    { claims: { iss: local }, issuers: [otherLocal], isKeyKnown: true },
  ]),
  certain('scheme_missing', 'unsupported_scheme', { authorization: `JWT ${jwt}` }, [
    { authorization: 'Basic dTpw' },
    { authorization: `Bearer: ${jwt}` },
  ]),
  likely('encrypted', 'encrypted_token', { token: 'eyJ.a.b.c.d', header: { alg: 'dir' } }, [{ token: 'eyJ.a.b.c...' }]),
  likely('certificate_bound_token', 'unsupported_cnf', { claims: { cnf: { 'x5t#S256': 'x' } } }, [
    { claims: { cnf: { jwk: {} } } },
    { claims: { cnf: 'x' } },
  ]),
  likely('audience_is_scope', 'invalid_audience', { claims: { aud: 'read:messages' } }, [
    { claims: { aud: ['read:messages', 'https://other.example/'] } },
    { claims: { aud: undefined } },
  ]),
  certain('machine_token_without_sub', 'malformed_sub', { claims: { sub: null, azp: 'job' } }, [
    { claims: { sub: 'alice', azp: 'job' } },
  ]),
  certain('machine_token_without_sub', 'malformed_sub', { claims: { sub: '', azp: 'job' } }, [
    { claims: { sub: 'alice', azp: 'job' } },
  ]),
  likely('placeholder_token', 'missing_credentials', { authorization: 'Bearer ', token: '' }, [
    noHeader,
    { authorization: 'Basic', token: '' },
  ]),
];
