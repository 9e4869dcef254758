import { hash } from 'node:crypto';
import { importProofKey, judgeNonce, readProof, readProofClaims } from '../dpop/proof.ts';
import { proofClaimChecks, proofHeaderChecks, proofKeyChecks } from '../dpop/proof-checks.ts';
import { AccessError } from '../failures.ts';
import type { Credentials } from '../http/credentials.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import { findAlgorithm } from '../jose/algorithms.ts';
import { isJsonObject } from '../jose/json.ts';
import { verifyJws } from '../jose/jws.ts';
import { bindingChecks, type Confirmation } from '../token/confirmation.ts';
import type { DryRunOptions, Sight } from './sight.ts';
import type { Walk } from './walk.ts';

/** What was sent, and what the token is bound to. */
export interface Sent {
  readonly credentials: Credentials | undefined;
  readonly confirmation: Confirmation | undefined;
}

/** Whether the token was sent by its owner, as far as the scheme and the certificate tell. */
export function judgeBinding(
  walk: Walk,
  { rules, request, connection }: DryRunOptions,
  { credentials, confirmation }: Sent,
) {
  const { certificate, jkt } = confirmation ?? {};
  const presented = certificate === undefined ? undefined : rules.readCertificate?.(request, connection);
  if (presented instanceof AccessError) walk.take('certificate_header', presented.reason, () => presented);
  const facts = credentials &&
    confirmation &&
    !(presented instanceof AccessError) && { jkt, certificate, presented, scheme: credentials.scheme };
  walk.make(bindingChecks, facts === false ? undefined : facts);
}

/** The proof, if one was sent: what it says, for the causes. */
export function judgeProof(
  walk: Walk,
  { rules, request, now }: DryRunOptions,
  { url, credentials, confirmation }: Sent & { readonly url: ExternalUrl | undefined },
): Sight['proof'] {
  const jkt = confirmation?.jkt;
  if (credentials?.proof === undefined || url === undefined || (confirmation !== undefined && jkt === undefined)) {
    walk.leave('proof', 'skipped', credentials?.proof === undefined ? 'no proof was sent' : 'the token is not bound');
    return undefined;
  }
  const { proof, token } = credentials;
  const jws = walk.take('proof', 'malformed_proof', () => readProof(proof));
  const header = jws?.header ?? {};
  walk.make(proofHeaderChecks, jws && { header, algorithms: rules.proofAlgorithms });
  const claims = walk.take('proof_claims', 'malformed_proof', () => jws && readProofClaims(jws));
  const ath = hash('sha256', token, 'base64url');
  walk.make(proofClaimChecks, claims && { claims, request: { method: request.method, url, ath, now } });
  const { jwk, alg } = header;
  const hasKey =
    isJsonObject(jwk) && walk.steps.every(({ id, verdict }) => !/^proof_jwk/.test(id) || verdict === 'pass');
  walk.make(proofKeyChecks, hasKey && jkt !== undefined ? { jwk, jkt } : undefined);
  const key = walk.take('proof_key_form', 'malformed_proof_jwk', () => (hasKey ? importProofKey(jwk) : undefined));
  const isGood = walk.take('proof_signature', 'invalid_proof_signature', () => {
    const algorithm = findAlgorithm(alg);
    if (jws === undefined || key === undefined || algorithm === undefined) return undefined;
    return verifyJws(jws, algorithm, key) || new AccessError('invalid_proof_signature');
  });
  const nonce = claims?.['nonce'];
  walk.take('proof_nonce_value', 'invalid_proof_nonce', () =>
    isGood === undefined
      ? undefined
      : (judgeNonce(typeof nonce === 'string' ? nonce : undefined, rules.nonces, now) ?? 'none asked'),
  );
  return { header, claims: claims ?? {} };
}
