import type { Check } from '../check.ts';
import { proofClaimChecks, proofHeaderChecks, proofKeyChecks } from '../dpop/proof-checks.ts';
import type { Reason } from '../failures.ts';
import {
  requireAcr,
  requireAge,
  requireAnyScope,
  requireAudience,
  requirePermissions,
  requireScopes,
} from '../policy/policy-checks.ts';
import { headerChecks, issuerChecks } from '../token/access-token.ts';
import { claimChecks } from '../token/claims.ts';
import { bindingChecks } from '../token/confirmation.ts';
import { profileChecks } from '../token/profile.ts';

/** One step of a judgement, as an explanation names it. */
export interface StepKind {
  readonly id: string;
  readonly group: string;
  /** Why it can refuse. One reason for a check; a stage, which produces what later steps need, has several. */
  readonly reasons: readonly Reason[];
}

/** The stages: each is a function that gives what later steps need, or a refusal with one of these reasons. */
const stageReasons = {
  url: ['bad_host_header', 'bad_forwarded_header'],
  credentials: [
    'missing_credentials',
    'multiple_authorization_headers',
    'unsupported_scheme',
    'bearer_with_dpop_proof',
    'bearer_not_accepted',
    'dpop_not_accepted',
    'missing_dpop_proof',
    'token_too_large',
  ],
  introspection: ['invalid_issuer', 'inactive_token', 'malformed_token'],
  shape: ['opaque_token', 'encrypted_token', 'malformed_token', 'malformed_encoding', 'malformed_header'],
  claims_form: ['malformed_claims'],
  issuer: ['invalid_issuer'],
  key: ['unknown_kid', 'key_not_usable'],
  signature: ['invalid_signature'],
  confirmation: ['malformed_cnf', 'unsupported_cnf'],
  deny_list: ['revoked_token', 'deny_list_unavailable'],
  client_certificate: ['bad_forwarded_header'],
  proof: ['multiple_dpop_proofs', 'proof_too_large', 'malformed_proof'],
  proof_claims_form: ['malformed_proof'],
  proof_key_form: ['malformed_proof_jwk'],
  proof_signature: ['invalid_proof_signature'],
  proof_nonce: ['missing_proof_nonce', 'invalid_proof_nonce'],
  claims_schema: ['unaccepted_claims'],
} as const satisfies Readonly<Record<string, readonly Reason[]>>;

/** The name of a stage. */
export type StageId = keyof typeof stageReasons;

const nobody = { acrValues: [], maxAge: undefined };

/** Every step that a judgement can have, in its order. */
export const stepKinds: readonly StepKind[] = [
  stage('url'),
  stage('credentials'),
  stage('introspection'),
  stage('shape'),
  stage('claims_form'),
  ...headerChecks.map(describe),
  stage('issuer'),
  ...issuerChecks.map(describe),
  stage('key'),
  stage('signature'),
  ...claimChecks.map(describe),
  ...profileChecks.map(describe),
  stage('confirmation'),
  stage('deny_list'),
  stage('client_certificate'),
  ...bindingChecks.map(describe),
  stage('proof'),
  ...proofHeaderChecks.map(describe),
  stage('proof_claims_form'),
  ...proofClaimChecks.map(describe),
  ...proofKeyChecks.map(describe),
  stage('proof_key_form'),
  stage('proof_signature'),
  stage('proof_nonce'),
  ...[requireAudience([]), requireScopes([]), requireAnyScope([]), requirePermissions([]), requireAcr(nobody)].map(
    describe,
  ),
  ...requireAge(0, nobody).map(describe),
  stage('claims_schema'),
];

/** Reasons that no step has: nobody could judge, a dry run cannot tell, or the service or the gate refuses before a judgement begins. */
export const reasonsWithoutStep: readonly Reason[] = [
  'keys_unavailable',
  'introspection_unavailable',
  'proof_before_start',
  'proof_replayed',
  'proof_before_start',
  'replay_store_unavailable',
  'replay_store_full',
  'unexpected',
  'unmet_expectation',
  'ambiguous_path',
  'ambiguous_request',
  'no_rule',
  'denied_by_rule',
  'untrusted_peer',
  'upstream_unavailable',
  'upstream_overloaded',
  'upstream_timeout',
  'upload_timeout',
];

function stage(id: StageId): StepKind {
  return { id, group: id, reasons: stageReasons[id] };
}

function describe<Facts>({ id, group, reason }: Check<Facts>): StepKind {
  return { id, group, reasons: [reason] };
}
