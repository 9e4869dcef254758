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

const claim = (name: string, as: CheckedValue['as'] = 'text'): CheckedValue => ({ in: 'claims', name, as });
const header = (name: string, length: number): CheckedValue => ({ in: 'header', name, length });
const kid: CheckedValue = { in: 'header', name: 'kid', as: 'kid', named: true };
const scope: CheckedValue = { in: 'claims', name: 'scope', length: 80, named: true };
const proofClaim = (name: string, as?: 'time'): CheckedValue => ({ in: 'proofClaims', name, ...(as && { as }) });
const presence = (name: string): CheckedValue => ({ in: 'claims', name, as: 'presence', named: true });

const timeForm = (name: 'exp' | 'nbf' | 'iat'): Unplaced => ({
  reasons: [`malformed_${name}`],
  group: name,
  label: `${name} is a number`,
  value: claim(name, 'time'),
  expected: 'a number of seconds from 0 to 10^11',
});
const proofForm = (name: string): Unplaced => ({
  reasons: ['malformed_proof_claims'],
  group: `proof_${name}`,
  label: `${name} is valid`,
});

type Unplaced = Omit<CheckRecord, 'row'>;

/** Records of one row, in their order. */
function inRow<Id extends string>(row: CheckRecord['row'], records: Readonly<Record<Id, Unplaced>>) {
  const placed = Object.entries<Unplaced>(records).map(([id, record]) => [id, { ...record, row }]);
  return Object.fromEntries(placed) as Readonly<Record<Id, CheckRecord>>; // the names are kept
}

const table = {
  ...inRow('credentials', {
    url: { reasons: ['bad_host_header', 'bad_forwarded_header'], label: 'URL' },
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
      label: 'credentials',
    },
    introspection: { reasons: ['invalid_issuer', 'inactive_token', 'malformed_token'], label: 'introspection' },
    shape: {
      reasons: ['opaque_token', 'encrypted_token', 'malformed_token', 'malformed_encoding', 'malformed_header'],
      label: 'three parts',
    },
    claims_form: { reasons: ['malformed_claims'], label: 'claims are a JSON object' },
  }),
  ...inRow('header', {
    alg: { reasons: ['unsupported_alg'], label: 'algorithm', value: header('alg', 24), setting: 'algorithms' },
    typ: { reasons: ['unsupported_typ'], label: 'type', value: header('typ', 60), expected: 'JWT, at+jwt, or none' },
    parameters: { reasons: ['unsupported_header'], label: 'parameters' },
    kid_form: {
      reasons: ['malformed_kid'],
      group: 'kid',
      label: 'kid is a string',
      value: kid,
      expected: 'a string of 1 to 256 characters',
    },
  }),
  ...inRow('issuer', {
    issuer: { reasons: ['invalid_issuer'], label: 'issuer (iss)', value: claim('iss'), setting: 'issuer' },
  }),
  ...inRow('header', {
    issuer_typ: {
      reasons: ['unsupported_typ'],
      group: 'typ',
      label: 'typ is allowed by the issuer',
      value: header('typ', 60),
      expected: 'at+jwt',
    },
    issuer_alg: {
      reasons: ['unsupported_alg'],
      group: 'alg',
      label: 'alg is allowed by the issuer',
      value: header('alg', 24),
      setting: 'algorithms',
    },
    kid: { reasons: ['missing_kid'], label: 'kid is present' },
  }),
  ...inRow('key', {
    key: {
      reasons: ['unknown_kid', 'key_not_usable'],
      label: 'published key',
      value: kid,
      expected: 'a kid that the provider publishes',
    },
  }),
  ...inRow('signature', {
    signature: { reasons: ['invalid_signature'], label: 'signature' },
  }),
  ...inRow('aud', {
    aud: { reasons: ['invalid_audience'], label: 'audience (aud)', value: claim('aud'), setting: 'audience' },
    client: { reasons: ['unaccepted_client'], label: 'client' },
  }),
  ...inRow('exp', {
    exp_present: { reasons: ['missing_exp'], group: 'exp', label: 'exp is present' },
    exp_form: timeForm('exp'),
    exp: { reasons: ['expired'], label: 'not expired (exp)', value: claim('exp', 'time') },
  }),
  ...inRow('nbf', {
    nbf_form: timeForm('nbf'),
    nbf: { reasons: ['not_yet_valid'], label: 'already valid (nbf)', value: claim('nbf', 'time') },
  }),
  ...inRow('iat', {
    iat_present: { reasons: ['missing_iat'], group: 'iat', label: 'iat is present' },
    iat_form: timeForm('iat'),
    iat: { reasons: ['issued_in_future'], label: 'not issued in the future (iat)', value: claim('iat', 'time') },
  }),
  ...inRow('sub scope', {
    sub: { reasons: ['malformed_sub'], label: 'subject (sub)', value: presence('sub') },
    scope: {
      reasons: ['malformed_scope'],
      label: 'scope is a string',
      value: scope,
      expected: 'one string with spaces',
    },
    actor_form: { reasons: ['malformed_actor'], group: 'actor', label: 'actor (act)', value: presence('act') },
    kind: { reasons: ['not_an_access_token'], label: 'is an access token' },
    profile_sub: { reasons: ['malformed_sub'], group: 'sub', label: 'subject, as the profile requires' },
    client_id: { reasons: ['malformed_client_id'], label: 'client (client_id)' },
    jti: { reasons: ['malformed_jti'], label: 'token id (jti)' },
  }),
  ...inRow('binding', {
    confirmation: { reasons: ['malformed_cnf', 'unsupported_cnf'], label: 'binding (cnf)', value: presence('cnf') },
    revocation: { reasons: ['token_lifetime_too_long', 'revoked_token', 'revocation_unknown'], label: 'revocation' },
    is_revoked: { reasons: ['revoked_token', 'revocation_unknown'], label: 'revocation by the application' },
    client_certificate: { reasons: ['bad_forwarded_header'], label: 'client certificate' },
    certificate_presented: {
      reasons: ['missing_client_certificate'],
      group: 'certificate',
      label: 'certificate presented',
    },
    certificate: { reasons: ['client_certificate_mismatch'], label: 'certificate of the token' },
    bound_scheme: { reasons: ['bound_token_as_bearer'], group: 'binding', label: 'bound token under DPoP' },
    unbound_scheme: { reasons: ['unbound_token_as_dpop'], group: 'binding', label: 'unbound token under Bearer' },
  }),
  ...inRow('proof', {
    proof: { reasons: ['multiple_dpop_proofs', 'proof_too_large', 'malformed_proof'], label: 'proof' },
    proof_typ: { reasons: ['unsupported_proof_typ'], label: 'type' },
    proof_alg: { reasons: ['unsupported_proof_alg'], label: 'algorithm' },
    proof_parameters: { reasons: ['unsupported_proof_header'], label: 'parameters' },
    proof_jwk: { reasons: ['malformed_proof_jwk'], label: 'jwk is present' },
    proof_jwk_public: { reasons: ['private_proof_jwk'], group: 'proof_jwk', label: 'jwk is public' },
    proof_jwk_alg: { reasons: ['malformed_proof_jwk'], group: 'proof_jwk', label: 'jwk matches alg' },
    proof_claims_form: { reasons: ['malformed_proof'], label: 'claims are a JSON object' },
    proof_jti_form: proofForm('jti'),
    proof_htm_form: proofForm('htm'),
    proof_htu_form: proofForm('htu'),
    proof_iat_form: proofForm('iat'),
    proof_ath_form: proofForm('ath'),
    proof_nonce_form: proofForm('nonce'),
    proof_method: {
      reasons: ['proof_method_mismatch'],
      group: 'proof_htm',
      label: 'method (htm)',
      value: { ...proofClaim('htm'), length: 60 },
    },
    proof_url: { reasons: ['proof_url_mismatch'], group: 'proof_htu', label: 'URL (htu)', value: proofClaim('htu') },
    proof_age: {
      reasons: ['proof_too_old'],
      group: 'proof_iat',
      label: 'not too old (iat)',
      value: proofClaim('iat', 'time'),
    },
    proof_lead: {
      reasons: ['proof_in_future'],
      group: 'proof_iat',
      label: 'not from the future (iat)',
      value: proofClaim('iat', 'time'),
    },
    proof_token: { reasons: ['proof_token_mismatch'], group: 'proof_ath', label: 'access token (ath)' },
    proof_key: { reasons: ['proof_key_mismatch'], label: 'key of the token' },
    proof_key_form: { reasons: ['malformed_proof_jwk'], label: 'jwk is a valid key' },
    proof_signature: { reasons: ['invalid_proof_signature'], label: 'signature' },
    proof_nonce: { reasons: ['missing_proof_nonce', 'invalid_proof_nonce'], label: 'nonce' },
  }),
  ...inRow('aud', {
    policy_audience: {
      reasons: ['invalid_audience'],
      group: 'aud',
      label: 'audience of the route',
      value: claim('aud'),
    },
  }),
  ...inRow('policy', {
    scopes: { reasons: ['insufficient_scope'], label: 'scopes', value: scope, list: 'all' },
    any_scope: { reasons: ['no_accepted_scope'], label: 'one of the scopes', value: scope },
    permissions: { reasons: ['missing_permission'], label: 'permissions', list: 'all' },
    actor_present: { reasons: ['actor_required'], group: 'actor', label: 'actor is present (act)' },
    actor: { reasons: ['actor_not_allowed'], label: 'actor is allowed (act)', value: presence('act') },
    acr: { reasons: ['unaccepted_acr'], label: 'authentication level (acr)' },
    auth_time: { reasons: ['missing_auth_time'], label: 'time of sign-in (auth_time)' },
    auth_age: {
      reasons: ['authentication_too_old'],
      group: 'auth_time',
      label: 'recent sign-in (auth_time)',
      value: claim('auth_time', 'time'),
    },
    condition: { reasons: ['condition_not_met'], label: 'condition of the rule' },
    claims_schema: { reasons: ['unaccepted_claims'], label: 'schema of the claims' },
  }),
  ...inRow('operation', {
    mcp_message: { reasons: ['malformed_message', 'message_too_large'], label: 'message (MCP)' },
    mcp_headers: { reasons: ['mcp_header_mismatch', 'mcp_headers_missing'], label: 'headers (MCP)' },
    mcp_operation: { reasons: ['no_operation_policy'], label: 'operation (MCP)' },
  }),
  ...inRow('replay', {
    replay: {
      reasons: ['proof_replayed', 'proof_before_start', 'replay_store_unavailable', 'replay_store_full'],
      label: 'proof not used before',
    },
  }),
};

export type CheckId = keyof typeof table;

/** Every check and stage, in the order of a decision. */
export const checks: Readonly<Record<CheckId, CheckRecord>> = table;

export function findCheck(id: string): CheckRecord | undefined {
  return Object.hasOwn(checks, id) ? checks[id as CheckId] : undefined; // an own member
}

export function sectionOf({ row }: CheckRecord): string {
  return rows[row];
}

/**
 * One check. A list of checks is in the order in which authorization makes them. Authorization stops at the first that fails;
 * an explanation makes them all.
 */
export interface Check<Facts> {
  /** Names the check in an explanation. No other check has the same. */
  readonly id: CheckId;
  /** Reason of the refusal if the check fails. */
  readonly reason: Reason;
  /** Checks of one thing have one group: a later one also fails if an earlier one did. */
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
