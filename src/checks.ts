import type { Reason } from './failures.ts';

/** Rows of an explanation on a terminal, each with its section on the console. Several checks share a row. */
const rows = {
  credentials: 'Request',
  header: 'Header of the token',
  issuer: 'Issuer and signature',
  key: 'Issuer and signature',
  signature: 'Issuer and signature',
  aud: 'Claims',
  exp: 'Claims',
  nbf: 'Claims',
  iat: 'Claims',
  'sub scope': 'Claims',
  binding: 'Owner of the token',
  proof: 'DPoP proof',
  replay: 'DPoP proof',
  operation: 'Policy of the route',
  policy: 'Policy of the route',
} as const;

export interface CheckedValue {
  readonly in: 'header' | 'claims' | 'proofClaims';
  readonly name: string;
  /** `presence`: the value itself is personal. Default `text`. */
  readonly as?: 'text' | 'time' | 'kid' | 'presence';
  /** Characters that are shown, at most. */
  readonly length?: number;
  /** Shown after its name in a row with several values. */
  readonly named?: true;
}

/** One check or stage of the order, as the explanation, the console, the log and the documentation show it. */
export interface CheckRecord {
  /** Reasons of its refusals. A check has one; a stage, which produces what later steps need, has several. */
  readonly reasons: readonly [Reason, ...Reason[]];
  readonly row: keyof typeof rows;
  /** Name for people. */
  readonly label: string;
  /** Checks of one value have one group: a later check also fails if an earlier one did. Default: the id. */
  readonly group?: string;
  readonly value?: CheckedValue;
  /** Expected value. Default: the list of `setting`, or what the check is compared with. */
  readonly expected?: string;
  /** A list that is expected: one of its values suffices, or all are required. Default `any`. */
  readonly list?: 'any' | 'all';
  readonly setting?: 'issuer' | 'audience' | 'algorithms';
}

const seconds = 'a number of seconds from 0 to 10^11';
const claim = (name: string, as: CheckedValue['as'] = 'text'): CheckedValue => ({ in: 'claims', name, as });
const header = (name: string, length: number): CheckedValue => ({ in: 'header', name, length });
const kid: CheckedValue = { in: 'header', name: 'kid', as: 'kid', named: true };
const scope: CheckedValue = { in: 'claims', name: 'scope', length: 80, named: true };
const presence = (name: string): CheckedValue => ({ in: 'claims', name, as: 'presence', named: true });

function proofForm(name: string): CheckRecord {
  return { reasons: ['malformed_proof_claims'], row: 'proof', group: `proof_${name}`, label: `${name} is valid` };
}

const table = {
  url: { reasons: ['bad_host_header', 'bad_forwarded_header'], row: 'credentials', label: 'URL' },
  credentials: {
    reasons: [
      'missing_credentials',
      'multiple_authorization_headers',
      'unsupported_scheme',
      'bearer_with_dpop_proof',
      'bearer_not_accepted',
      'dpop_not_accepted',
      'missing_dpop_proof',
      'token_too_large',
    ],
    row: 'credentials',
    label: 'credentials',
  },
  introspection: {
    reasons: ['invalid_issuer', 'inactive_token', 'malformed_token'],
    row: 'credentials',
    label: 'introspection',
  },
  shape: {
    reasons: ['opaque_token', 'encrypted_token', 'malformed_token', 'malformed_encoding', 'malformed_header'],
    row: 'credentials',
    label: 'three parts',
  },
  claims_form: { reasons: ['malformed_claims'], row: 'credentials', label: 'claims are a JSON object' },
  alg: {
    reasons: ['unsupported_alg'],
    row: 'header',
    label: 'algorithm',
    value: header('alg', 24),
    setting: 'algorithms',
  },
  typ: {
    reasons: ['unsupported_typ'],
    row: 'header',
    label: 'type',
    value: header('typ', 60),
    expected: 'JWT, at+jwt, or none',
  },
  parameters: { reasons: ['unsupported_header'], row: 'header', label: 'parameters' },
  kid_form: {
    reasons: ['malformed_kid'],
    row: 'header',
    group: 'kid',
    label: 'kid is a string',
    value: kid,
    expected: 'a string of 1 to 256 characters',
  },
  issuer: {
    reasons: ['invalid_issuer'],
    row: 'issuer',
    label: 'issuer (iss)',
    value: claim('iss'),
    setting: 'issuer',
  },
  issuer_typ: {
    reasons: ['unsupported_typ'],
    row: 'header',
    group: 'typ',
    label: 'typ is allowed by the issuer',
    value: header('typ', 60),
    expected: 'at+jwt',
  },
  issuer_alg: {
    reasons: ['unsupported_alg'],
    row: 'header',
    group: 'alg',
    label: 'alg is allowed by the issuer',
    value: header('alg', 24),
    setting: 'algorithms',
  },
  kid: { reasons: ['missing_kid'], row: 'header', label: 'kid is present' },
  key: {
    reasons: ['unknown_kid', 'key_not_usable'],
    row: 'key',
    label: 'published key',
    value: kid,
    expected: 'a kid that the provider publishes',
  },
  signature: { reasons: ['invalid_signature'], row: 'signature', label: 'signature' },
  aud: { reasons: ['invalid_audience'], row: 'aud', label: 'audience (aud)', value: claim('aud'), setting: 'audience' },
  client: { reasons: ['unaccepted_client'], row: 'aud', label: 'client' },
  exp_present: { reasons: ['missing_exp'], row: 'exp', group: 'exp', label: 'exp is present' },
  exp_form: {
    reasons: ['malformed_exp'],
    row: 'exp',
    group: 'exp',
    label: 'exp is a number',
    value: claim('exp', 'time'),
    expected: seconds,
  },
  exp: { reasons: ['expired'], row: 'exp', label: 'not expired (exp)', value: claim('exp', 'time') },
  nbf_form: {
    reasons: ['malformed_nbf'],
    row: 'nbf',
    group: 'nbf',
    label: 'nbf is a number',
    value: claim('nbf', 'time'),
    expected: seconds,
  },
  nbf: { reasons: ['not_yet_valid'], row: 'nbf', label: 'already valid (nbf)', value: claim('nbf', 'time') },
  iat_present: { reasons: ['missing_iat'], row: 'iat', group: 'iat', label: 'iat is present' },
  iat_form: {
    reasons: ['malformed_iat'],
    row: 'iat',
    group: 'iat',
    label: 'iat is a number',
    value: claim('iat', 'time'),
    expected: seconds,
  },
  iat: {
    reasons: ['issued_in_future'],
    row: 'iat',
    label: 'not issued in the future (iat)',
    value: claim('iat', 'time'),
  },
  sub: { reasons: ['malformed_sub'], row: 'sub scope', label: 'subject (sub)', value: presence('sub') },
  scope: {
    reasons: ['malformed_scope'],
    row: 'sub scope',
    label: 'scope is a string',
    value: scope,
    expected: 'one string with spaces',
  },
  actor_form: {
    reasons: ['malformed_actor'],
    row: 'sub scope',
    group: 'actor',
    label: 'actor (act)',
    value: presence('act'),
  },
  kind: { reasons: ['not_an_access_token'], row: 'sub scope', label: 'is an access token' },
  profile_sub: {
    reasons: ['malformed_sub'],
    row: 'sub scope',
    group: 'sub',
    label: 'subject, as the profile requires',
  },
  client_id: { reasons: ['malformed_client_id'], row: 'sub scope', label: 'client (client_id)' },
  jti: { reasons: ['malformed_jti'], row: 'sub scope', label: 'token id (jti)' },
  confirmation: {
    reasons: ['malformed_cnf', 'unsupported_cnf'],
    row: 'binding',
    label: 'binding (cnf)',
    value: presence('cnf'),
  },
  revocation: {
    reasons: ['token_lifetime_too_long', 'revoked_token', 'revocation_unknown'],
    row: 'binding',
    label: 'revocation',
  },
  status_list: {
    reasons: ['malformed_status', 'status_list_not_allowed', 'revoked_token', 'revocation_unknown'],
    row: 'binding',
    label: 'status list',
  },
  deny_list: { reasons: ['revoked_token', 'deny_list_unavailable'], row: 'binding', label: 'deny list' },
  client_certificate: { reasons: ['bad_forwarded_header'], row: 'binding', label: 'client certificate' },
  certificate_presented: {
    reasons: ['missing_client_certificate'],
    row: 'binding',
    group: 'certificate',
    label: 'certificate presented',
  },
  certificate: { reasons: ['client_certificate_mismatch'], row: 'binding', label: 'certificate of the token' },
  bound_scheme: {
    reasons: ['bound_token_as_bearer'],
    row: 'binding',
    group: 'binding',
    label: 'bound token under DPoP',
  },
  unbound_scheme: {
    reasons: ['unbound_token_as_dpop'],
    row: 'binding',
    group: 'binding',
    label: 'unbound token under Bearer',
  },
  proof: { reasons: ['multiple_dpop_proofs', 'proof_too_large', 'malformed_proof'], row: 'proof', label: 'proof' },
  proof_typ: { reasons: ['unsupported_proof_typ'], row: 'proof', label: 'type' },
  proof_alg: { reasons: ['unsupported_proof_alg'], row: 'proof', label: 'algorithm' },
  proof_parameters: { reasons: ['unsupported_proof_header'], row: 'proof', label: 'parameters' },
  proof_jwk: { reasons: ['malformed_proof_jwk'], row: 'proof', label: 'jwk is present' },
  proof_jwk_public: { reasons: ['private_proof_jwk'], row: 'proof', group: 'proof_jwk', label: 'jwk is public' },
  proof_jwk_alg: { reasons: ['malformed_proof_jwk'], row: 'proof', group: 'proof_jwk', label: 'jwk matches alg' },
  proof_claims_form: { reasons: ['malformed_proof'], row: 'proof', label: 'claims are a JSON object' },
  proof_jti_form: proofForm('jti'),
  proof_htm_form: proofForm('htm'),
  proof_htu_form: proofForm('htu'),
  proof_iat_form: proofForm('iat'),
  proof_ath_form: proofForm('ath'),
  proof_nonce_form: proofForm('nonce'),
  proof_method: {
    reasons: ['proof_method_mismatch'],
    row: 'proof',
    group: 'proof_htm',
    label: 'method (htm)',
    value: { in: 'proofClaims', name: 'htm', length: 60 },
  },
  proof_url: {
    reasons: ['proof_url_mismatch'],
    row: 'proof',
    group: 'proof_htu',
    label: 'URL (htu)',
    value: { in: 'proofClaims', name: 'htu' },
  },
  proof_age: {
    reasons: ['proof_too_old'],
    row: 'proof',
    group: 'proof_iat',
    label: 'not too old (iat)',
    value: { in: 'proofClaims', name: 'iat', as: 'time' },
  },
  proof_lead: {
    reasons: ['proof_in_future'],
    row: 'proof',
    group: 'proof_iat',
    label: 'not from the future (iat)',
    value: { in: 'proofClaims', name: 'iat', as: 'time' },
  },
  proof_token: { reasons: ['proof_token_mismatch'], row: 'proof', group: 'proof_ath', label: 'access token (ath)' },
  proof_key: { reasons: ['proof_key_mismatch'], row: 'proof', label: 'key of the token' },
  proof_key_form: { reasons: ['malformed_proof_jwk'], row: 'proof', label: 'jwk is a valid key' },
  proof_signature: { reasons: ['invalid_proof_signature'], row: 'proof', label: 'signature' },
  proof_nonce: { reasons: ['missing_proof_nonce', 'invalid_proof_nonce'], row: 'proof', label: 'nonce' },
  policy_audience: {
    reasons: ['invalid_audience'],
    row: 'aud',
    group: 'aud',
    label: 'audience of the route',
    value: claim('aud'),
  },
  scopes: { reasons: ['insufficient_scope'], row: 'policy', label: 'scopes', value: scope, list: 'all' },
  any_scope: { reasons: ['no_accepted_scope'], row: 'policy', label: 'one of the scopes', value: scope },
  permissions: { reasons: ['missing_permission'], row: 'policy', label: 'permissions', list: 'all' },
  actor_present: { reasons: ['actor_required'], row: 'policy', group: 'actor', label: 'actor is present (act)' },
  actor: { reasons: ['actor_not_allowed'], row: 'policy', label: 'actor is allowed (act)', value: presence('act') },
  claim_conditions: { reasons: ['claim_not_allowed'], row: 'policy', label: 'conditions on claims' },
  acr: { reasons: ['unaccepted_acr'], row: 'policy', label: 'authentication level (acr)' },
  auth_time: { reasons: ['missing_auth_time'], row: 'policy', label: 'time of sign-in (auth_time)' },
  auth_age: {
    reasons: ['authentication_too_old'],
    row: 'policy',
    group: 'auth_time',
    label: 'recent sign-in (auth_time)',
    value: claim('auth_time', 'time'),
  },
  claims_schema: { reasons: ['unaccepted_claims'], row: 'policy', label: 'schema of the claims' },
  mcp_message: { reasons: ['malformed_message', 'message_too_large'], row: 'operation', label: 'message (MCP)' },
  mcp_headers: { reasons: ['mcp_header_mismatch', 'mcp_headers_missing'], row: 'operation', label: 'headers (MCP)' },
  mcp_operation: { reasons: ['no_operation_policy'], row: 'operation', label: 'operation (MCP)' },
  replay: {
    reasons: ['proof_replayed', 'proof_before_start', 'replay_store_unavailable', 'replay_store_full'],
    row: 'replay',
    label: 'proof not used before',
  },
} as const satisfies Readonly<Record<string, CheckRecord>>;

export type CheckId = keyof typeof table;

/** Every check and stage, in the order of a decision. */
export const checks: Readonly<Record<CheckId, CheckRecord>> = table;

export function findCheck(id: string): CheckRecord | undefined {
  return Object.hasOwn(checks, id) ? checks[id as CheckId] : undefined; // an own member
}

export function sectionOf({ row }: CheckRecord): string {
  return rows[row];
}
