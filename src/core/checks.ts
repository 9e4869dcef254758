import type { AccessErrorOptions, Reason } from './failures.ts';
import { type Comparison, Refused } from './refused.ts';

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
  binding: 'Binding of the token',
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

const claim = (name: string, as: CheckedValue['as'] = 'text'): CheckedValue => ({ in: 'claims', name, as });
const alg = { value: { in: 'header', name: 'alg', length: 24 }, setting: 'algorithms' } as const;
const typ: CheckedValue = { in: 'header', name: 'typ', length: 60 };
const kid: CheckedValue = { in: 'header', name: 'kid', as: 'kid', named: true };
const scope: CheckedValue = { in: 'claims', name: 'scope', length: 80, named: true };
const proofIat: Partial<Unplaced> = { group: 'proof_iat', value: { in: 'proofClaims', name: 'iat', as: 'time' } };
const authTime: Partial<Unplaced> = { group: 'auth_time', value: claim('auth_time', 'time') };
const presence = (name: string): CheckedValue => ({ in: 'claims', name, as: 'presence', named: true });

type Unplaced = Omit<CheckRecord, 'row'>;

const check = (reason: Reason, label: string, more?: Omit<Unplaced, 'reasons' | 'label'>): Unplaced => {
  return { reasons: [reason], label, ...more };
};
const stage = (label: string, ...reasons: CheckRecord['reasons']): Unplaced => ({ reasons, label });
const timeForm = (name: 'exp' | 'nbf' | 'iat'): Unplaced => {
  const expected = 'a number of seconds from 0 to 10^11';
  return check(`malformed_${name}`, `${name} is a number`, { group: name, value: claim(name, 'time'), expected });
};
const proofForm = (name: string): Unplaced =>
  check('malformed_proof_claims', `${name} is valid`, { group: `proof_${name}` });

function inRow<Id extends string>(row: CheckRecord['row'], records: Readonly<Record<Id, Unplaced>>) {
  const placed = Object.entries<Unplaced>(records).map(([id, record]) => [id, { ...record, row }]);
  return Object.fromEntries(placed) as Readonly<Record<Id, CheckRecord>>; // the names are kept
}

/** Every check and stage, in the order of a decision. */
const table = {
  ...inRow('credentials', {
    url: stage('URL', 'bad_host_header', 'bad_forwarded_header'),
    credentials: stage(
      'credentials',
      'missing_credentials',
      'multiple_authorization_headers',
      'unsupported_scheme',
      'bearer_with_dpop_proof',
      'bearer_not_accepted',
      'dpop_not_accepted',
      'missing_dpop_proof',
      'token_too_large',
    ),
    introspection: stage('introspection', 'invalid_issuer', 'inactive_token', 'malformed_token'),
    shape: {
      reasons: ['opaque_token', 'encrypted_token', 'malformed_token', 'malformed_encoding', 'malformed_header'],
      label: 'three parts',
    },
    claims_form: check('malformed_claims', 'claims are a JSON object'),
  }),
  ...inRow('header', {
    alg: check('unsupported_alg', 'algorithm', alg),
    typ: check('unsupported_typ', 'type', { value: typ, expected: 'JWT, at+jwt, or none' }),
    parameters: check('unsupported_header', 'parameters'),
    kid_form: check('malformed_kid', 'kid is a string', {
      value: kid,
      group: 'kid',
      expected: 'a string of 1 to 256 characters',
    }),
  }),
  ...inRow('issuer', { issuer: check('invalid_issuer', 'issuer (iss)', { value: claim('iss'), setting: 'issuer' }) }),
  ...inRow('header', {
    issuer_typ: check('unsupported_typ', 'typ is allowed by the issuer', {
      group: 'typ',
      value: typ,
      expected: 'at+jwt',
    }),
    issuer_alg: check('unsupported_alg', 'alg is allowed by the issuer', { group: 'alg', ...alg }),
    kid: check('missing_kid', 'kid is present'),
  }),
  ...inRow('key', {
    key: {
      ...stage('published key', 'unknown_kid', 'key_not_usable'),
      value: kid,
      expected: 'a kid that the provider publishes',
    },
  }),
  ...inRow('signature', { signature: check('invalid_signature', 'signature') }),
  ...inRow('aud', {
    aud: check('invalid_audience', 'audience (aud)', { value: claim('aud'), setting: 'audience' }),
    client: check('unaccepted_client', 'client'),
  }),
  ...inRow('exp', {
    exp_present: check('missing_exp', 'exp is present', { group: 'exp' }),
    exp_form: timeForm('exp'),
    exp: check('expired', 'not expired (exp)', { value: claim('exp', 'time') }),
  }),
  ...inRow('nbf', {
    nbf_form: timeForm('nbf'),
    nbf: check('not_yet_valid', 'already valid (nbf)', { value: claim('nbf', 'time') }),
  }),
  ...inRow('iat', {
    iat_present: check('missing_iat', 'iat is present', { group: 'iat' }),
    iat_form: timeForm('iat'),
    iat: check('issued_in_future', 'not issued in the future (iat)', { value: claim('iat', 'time') }),
  }),
  ...inRow('sub scope', {
    sub: check('malformed_sub', 'subject (sub)', { value: presence('sub') }),
    scope: check('malformed_scope', 'scope is a string', { value: scope, expected: 'one string with spaces' }),
    actor_form: check('malformed_actor', 'actor (act)', { group: 'actor', value: presence('act') }),
    kind: check('not_an_access_token', 'is an access token'),
    profile_sub: check('malformed_sub', 'subject, as the profile requires', { group: 'sub' }),
    client_id: check('malformed_client_id', 'client (client_id)'),
    jti: check('malformed_jti', 'token id (jti)'),
  }),
  ...inRow('binding', {
    confirmation: { ...stage('binding (cnf)', 'malformed_cnf', 'unsupported_cnf'), value: presence('cnf') },
    revocation: stage('revocation', 'token_lifetime_too_long', 'revoked_token', 'revocation_unknown'),
    is_revoked: stage('revocation by the application', 'revoked_token', 'revocation_unknown'),
    client_certificate: check('bad_forwarded_header', 'client certificate'),
    certificate_presented: check('missing_client_certificate', 'certificate presented', { group: 'certificate' }),
    certificate: check('client_certificate_mismatch', 'certificate of the token'),
    bound_scheme: check('bound_token_as_bearer', 'bound token under DPoP', { group: 'binding' }),
    unbound_scheme: check('unbound_token_as_dpop', 'unbound token under Bearer', { group: 'binding' }),
  }),
  ...inRow('proof', {
    proof: stage('proof', 'multiple_dpop_proofs', 'proof_too_large', 'malformed_proof'),
    proof_typ: check('unsupported_proof_typ', 'type'),
    proof_alg: check('unsupported_proof_alg', 'algorithm'),
    proof_parameters: check('unsupported_proof_header', 'parameters'),
    proof_jwk: check('malformed_proof_jwk', 'jwk is present'),
    proof_jwk_public: check('private_proof_jwk', 'jwk is public', { group: 'proof_jwk' }),
    proof_jwk_alg: check('malformed_proof_jwk', 'jwk matches alg', { group: 'proof_jwk' }),
    proof_claims_form: check('malformed_proof', 'claims are a JSON object'),
    proof_jti_form: proofForm('jti'),
    proof_htm_form: proofForm('htm'),
    proof_htu_form: proofForm('htu'),
    proof_iat_form: proofForm('iat'),
    proof_ath_form: proofForm('ath'),
    proof_nonce_form: proofForm('nonce'),
    proof_method: check('proof_method_mismatch', 'method (htm)', {
      group: 'proof_htm',
      value: { in: 'proofClaims', name: 'htm', length: 60 },
    }),
    proof_url: check('proof_url_mismatch', 'URL (htu)', {
      group: 'proof_htu',
      value: { in: 'proofClaims', name: 'htu' },
    }),
    proof_age: check('proof_too_old', 'not too old (iat)', proofIat),
    proof_lead: check('proof_in_future', 'not from the future (iat)', proofIat),
    proof_token: check('proof_token_mismatch', 'access token (ath)', { group: 'proof_ath' }),
    proof_key: check('proof_key_mismatch', 'key of the token'),
    proof_key_form: check('malformed_proof_jwk', 'jwk is a valid key'),
    proof_signature: check('invalid_proof_signature', 'signature'),
    proof_nonce: stage('nonce', 'missing_proof_nonce', 'invalid_proof_nonce'),
  }),
  ...inRow('aud', {
    policy_audience: check('invalid_audience', 'audience of the route', { group: 'aud', value: claim('aud') }),
  }),
  ...inRow('policy', {
    scopes: check('insufficient_scope', 'scopes', { value: scope, list: 'all' }),
    any_scope: check('no_accepted_scope', 'one of the scopes', { value: scope }),
    permissions: check('missing_permission', 'permissions', { list: 'all' }),
    actor_present: check('actor_required', 'actor is present (act)', { group: 'actor' }),
    actor: check('actor_not_allowed', 'actor is allowed (act)', { value: presence('act') }),
    acr: check('unaccepted_acr', 'authentication level (acr)'),
    auth_time: check('missing_auth_time', 'time of sign-in (auth_time)'),
    auth_age: check('authentication_too_old', 'recent sign-in (auth_time)', authTime),
    condition: check('condition_not_met', 'condition of the rule'),
    claims_schema: check('unaccepted_claims', 'schema of the claims'),
  }),
  ...inRow('operation', {
    mcp_message: stage('message (MCP)', 'malformed_message', 'message_too_large'),
    mcp_headers: stage('headers (MCP)', 'mcp_header_mismatch', 'mcp_headers_missing'),
    mcp_operation: check('no_operation_policy', 'operation (MCP)'),
  }),
  ...inRow('replay', {
    replay: {
      reasons: ['proof_replayed', 'proof_before_start', 'replay_store_unavailable', 'replay_store_full'],
      label: 'proof not used before',
    },
  }),
};

export type CheckId = keyof typeof table;

export const checks: Readonly<Record<CheckId, CheckRecord>> = table;

export function findCheck(id: string): CheckRecord | undefined {
  return Object.hasOwn(checks, id) ? checks[id as CheckId] : undefined; // an own member
}

export function sectionOf({ row }: CheckRecord): string {
  return rows[row];
}

/** One check of a list. Authorization stops at the first that fails; an explanation makes them all. */
export interface Check<Facts> {
  /** Names the check in an explanation. No other check has the same. */
  readonly id: CheckId;
  readonly reason: Reason;
  readonly group: string;
  /** Reads the facts only: no counter, no cache, no clock. Must not throw, also if an earlier check of its list failed. */
  readonly passes: (facts: Facts) => boolean;
  /** Details of the refusal in addition to its reason. Called only when the check has failed. */
  readonly details: ((facts: Facts) => AccessErrorOptions) | undefined;
  /** Facts of a failed check for the log. Called only when the line is written. */
  readonly compare: ((facts: Facts) => Comparison) | undefined;
}

/** Creates a check by its record in checks.ts. One shape for all of them: the loop over a list stays fast. */
export function createCheck<Facts>(
  id: CheckId,
  passes: (facts: Facts) => boolean,
  { details, compare }: Partial<Pick<Check<Facts>, 'details' | 'compare'>> = {},
): Check<Facts> {
  const { reasons, group = id } = checks[id];
  return { id, reason: reasons[0], group, passes, details, compare };
}

/** Returns the refusal of the first check that fails. A dry run notes each of them in its walk, and goes on. */
export function refuseByFirst<Facts>(
  checks: readonly Check<Facts>[],
  facts: Facts,
  walk?: { checks<F>(checks: readonly Check<F>[], facts: F): undefined },
): Refused | undefined {
  if (walk !== undefined) return walk.checks(checks, facts);
  for (const check of checks) if (!check.passes(facts)) return refuseBy(check, facts);
  return undefined;
}

export function refuseBy<Facts>({ reason, details, compare }: Check<Facts>, facts: Facts): Refused {
  return new Refused(reason, details?.(facts), compare && { compare: () => compare(facts) });
}
