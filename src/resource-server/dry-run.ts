/**
 * A dry run of a judgement: every step is made, also after one that has failed, as far as there is something to make it
 * with. It uses the records and functions that the judgement uses, in the same order, and changes nothing: no token is
 * cached, no key fetched, no issuer asked, no proof used up, nothing counted.
 *
 * An explanation starts here. `steps` are what happened, in order; their ids are those of `stepKinds` (steps.ts), and the
 * first that failed has the reason that `judge` gives. `gathered` is what the steps were made with: what a step expected
 * and saw is in there. What only an explanation needs (expected, seen, causes) is keyed by the id of the step, in `explain/`.
 */
import { hash } from 'node:crypto';
import { importProofKey, judgeNonce, readProof, readProofClaims } from '../dpop/proof.ts';
import { proofClaimChecks, proofHeaderChecks, proofKeyChecks } from '../dpop/proof-checks.ts';
import { AccessError, type Reason } from '../failures.ts';
import { type Credentials, readCredentials } from '../http/credentials.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { readAlg } from '../jose/algorithms.ts';
import { isJsonObject, type JsonObject } from '../jose/json.ts';
import { isKid } from '../jose/jwk.ts';
import { type Jws, verifyJws } from '../jose/jws.ts';
import type { KeySet } from '../keys/key-set.ts';
import {
  type AccessTokenRules,
  findIssuer,
  findKey,
  headerChecks,
  type IssuerRules,
  issuerChecks,
  readClaims,
  readToken,
} from '../token/access-token.ts';
import { claimChecks, type RegisteredClaims } from '../token/claims.ts';
import { bindingChecks, type Confirmation, readConfirmation } from '../token/confirmation.ts';
import { profileChecks } from '../token/profile.ts';
import { readScopes } from '../token/scope.ts';
import type { CheckedPolicy, PolicyFacts } from '../token/token-policy.ts';
import type { JudgementRules } from './judgement.ts';
import { openWalk, type Step, type Walk } from './walk.ts';

/** One request that is judged without any effect. */
export interface DryCall {
  readonly request: ResourceRequest;
  readonly policy: CheckedPolicy;
  readonly connection: Connection | undefined;
  /** Seconds since the epoch. */
  readonly now: number;
  /** Keys in place of those that the server has at hand. */
  readonly keys?: KeySet | undefined;
}

/** What a dry run has found. */
export interface DryRun {
  readonly verdict: 'admitted' | 'refused' | 'undecided';
  /** That of the first step that has failed; `undefined` if none has. */
  readonly reason: Reason | undefined;
  readonly steps: readonly Step[];
  readonly gathered: Gathered;
}

/** What the steps were made with; `undefined` for what could not be produced. */
export interface Gathered {
  readonly rules: JudgementRules;
  readonly call: DryCall;
  url?: ExternalUrl;
  credentials?: Credentials;
  trusted?: AccessTokenRules;
  header?: JsonObject;
  /** Verified only if `issuer` and the signature are good. */
  claims?: JsonObject;
  isVerified?: boolean;
  /** The one that `iss` names; if that is none of ours and there is only one, that one, for its rules. */
  issuer?: IssuerRules;
  confirmation?: Confirmation;
  /** Thumbprint of the client's certificate. */
  presented?: string;
  proofHeader?: JsonObject;
  proofClaims?: JsonObject;
  ath?: string;
}

/** Makes every step of a judgement. Rejects with what a resolver of issuers, or a schema, throws. */
export async function dryRun(rules: JudgementRules, call: DryCall): Promise<DryRun> {
  const walk = openWalk();
  const gathered: Gathered = { rules, call };
  await walkRequest(walk, gathered);
  const { steps } = walk;
  const decisive = steps.find(({ verdict }) => verdict === 'fail' || verdict === 'unknown');
  const failed = steps.find(({ verdict }) => verdict === 'fail');
  const refused = decisive?.verdict === 'fail' ? 'refused' : 'undecided';
  return { verdict: decisive === undefined ? 'admitted' : refused, reason: failed?.reason, steps, gathered };
}

async function walkRequest(walk: Walk, g: Gathered): Promise<void> {
  const { rules, call } = g;
  const { request, connection } = call;
  const url = walk.stage('url', rules.readExternalUrl(request, connection));
  const credentials = walk.stage('credentials', readCredentials(request.headers, rules.mode));
  if (url === undefined) return;
  g.url = url;
  // A scheme that is not accepted here: there is still a token to look at.
  const lenient = credentials ?? readCredentials(request.headers, 'allowed');
  if (lenient instanceof AccessError) return;
  g.credentials = lenient;
  g.ath = hash('sha256', lenient.token, 'base64url');
  g.trusted = await rules.issuers.find(request, url, lenient.token);
  const { introspection } = rules;
  if (introspection?.handles(lenient.token)) {
    const isTrusted = g.trusted.issuers.has(introspection.issuer) || rules.opaqueRules !== undefined;
    walk.stage('introspection', isTrusted ? 'unknown' : new AccessError('invalid_issuer'));
    return;
  }
  await walkToken(walk, g, lenient.token);
  walkBinding(walk, g);
  walkProof(walk, g);
  await walkPolicies(walk, g);
  if (lenient.proof !== undefined && rules.replay !== 'off') walk.skip('replay');
}

async function walkToken(walk: Walk, g: Gathered, token: string): Promise<void> {
  const { rules, call, trusted } = g;
  const jws = walk.stage('shape', readToken(token));
  if (jws === undefined || trusted === undefined) return;
  const { header } = jws;
  g.header = header;
  const claims = walk.stage('claims_form', readClaims(jws));
  walk.checks(headerChecks, { header, algorithms: trusted.algorithms });
  if (claims === undefined) return;
  g.claims = claims;
  const issuer = walk.stage('issuer', findIssuer(claims, trusted.issuers));
  const assumed = issuer ?? findOnly(trusted.issuers);
  if (assumed === undefined) return;
  g.issuer = assumed;
  walk.checks(issuerChecks, { header, issuer: assumed });
  if (issuer === undefined) walk.block('key', 'signature');
  else g.isVerified = walkSignature(walk, jws, call.keys === undefined ? issuer : { ...issuer, keys: call.keys });
  walk.checks(claimChecks, { claims, rules: assumed, now: call.now });
  if (assumed.profile !== undefined) walk.checks(profileChecks, { claims });
  const confirmation = walk.stage('confirmation', readConfirmation(claims, trusted.certificates ?? 'off'));
  if (confirmation !== undefined) g.confirmation = confirmation;
  if (rules.refuseDenied === undefined) return;
  const kid = isKid(header['kid']) ? header['kid'] : undefined;
  walk.stage('deny_list', (await rules.refuseDenied(claims, kid)) ?? true);
}

/** Whether the signature is by the key that the header names. */
function walkSignature(walk: Walk, jws: Jws, issuer: IssuerRules): boolean {
  const { alg, kid } = jws.header;
  const algorithm = readAlg(alg, issuer.algorithms);
  if (algorithm === undefined || typeof alg !== 'string' || !isKid(kid)) {
    walk.block('key', 'signature');
    return false;
  }
  const found = walk.stage('key', withoutKeys(findKey(issuer, kid, alg)));
  if (found === undefined) {
    walk.block('signature');
    return false;
  }
  const isSigned = verifyJws(jws, algorithm, found.key);
  return walk.stage('signature', isSigned ? true : new AccessError('invalid_signature')) === true;
}

/** Without keys nobody can tell whether a token is good. */
function withoutKeys<T>(found: T | AccessError): T | AccessError | 'unknown' {
  return found instanceof AccessError && found.reason === 'keys_unavailable' ? 'unknown' : found;
}

function walkBinding(walk: Walk, g: Gathered): void {
  const { rules, call, confirmation, credentials } = g;
  if (confirmation === undefined || credentials === undefined) return;
  const { certificate } = confirmation;
  if (certificate !== undefined) {
    const presented = rules.readCertificate?.(call.request, call.connection);
    walk.stage('client_certificate', presented ?? true);
    if (presented instanceof AccessError) return;
    if (presented !== undefined) g.presented = presented;
  }
  walk.checks(bindingChecks, { ...confirmation, presented: g.presented, scheme: credentials.scheme });
}

function walkProof(walk: Walk, g: Gathered): void {
  const { rules, call, credentials, confirmation, url, ath } = g;
  const jkt = confirmation?.jkt;
  if (credentials?.proof === undefined || jkt === undefined || url === undefined || ath === undefined) return;
  const { method } = call.request;
  const jws = walk.stage('proof', readProof(credentials.proof));
  if (jws === undefined) return;
  g.proofHeader = jws.header;
  const { alg, jwk } = jws.header;
  const hasGoodHeader = walk.checks(proofHeaderChecks, { header: jws.header, algorithms: rules.proofAlgorithms });
  const claims = walk.stage('proof_claims_form', readProofClaims(jws));
  if (claims === undefined) return;
  g.proofClaims = claims;
  walk.checks(proofClaimChecks, { claims, request: { method, url, ath, now: call.now } });
  const algorithm = readAlg(alg, rules.proofAlgorithms);
  if (!isJsonObject(jwk) || algorithm === undefined || !hasGoodHeader) {
    walk.block('proof_key', 'proof_key_form', 'proof_signature');
  } else {
    walk.checks(proofKeyChecks, { jwk, jkt });
    const key = walk.stage('proof_key_form', importProofKey(jwk));
    if (key === undefined) walk.block('proof_signature');
    else {
      const isSigned = verifyJws(jws, algorithm, key);
      walk.stage('proof_signature', isSigned ? true : new AccessError('invalid_proof_signature'));
    }
  }
  const { nonce } = claims;
  const judged = judgeNonce(typeof nonce === 'string' ? nonce : undefined, rules.nonces.demanded, call.now);
  if (rules.nonces.demanded !== undefined) walk.stage('proof_nonce', judged ?? true);
}

async function walkPolicies(walk: Walk, g: Gathered): Promise<void> {
  const { claims, issuer, call } = g;
  if (claims === undefined || issuer === undefined) return;
  const token = {
    claims: claims as RegisteredClaims, // the checks of a policy take any value of any claim
    scopes: readScopes(claims, issuer.scopeClaim),
    verifiedBy: { issuer },
  };
  const facts: PolicyFacts = { token, now: call.now };
  for (const policy of [issuer.policy, call.policy]) {
    if (policy !== undefined) for (const step of await walkPolicy(policy, facts, g)) walk.add(step);
  }
}

/** The steps of a policy: of one that any of several parts fulfils, those of the part that holds, or else of the first. */
async function walkPolicy({ made }: CheckedPolicy, facts: PolicyFacts, g: Gathered): Promise<readonly Step[]> {
  if (made.of === 'checks') {
    const walk = openWalk();
    walk.checks(made.checks, facts);
    // A schema is code of the caller's own: it gets only claims that somebody trusted has signed.
    if (made.readClaims !== undefined && g.isVerified === true) {
      walk.stage('claims_schema', (await made.readClaims(facts.token.claims)) ?? true);
    }
    return walk.steps;
  }
  const parts: (readonly Step[])[] = [];
  for (const part of made.parts) parts.push(await walkPolicy(part, facts, g));
  if (made.of === 'all') return parts.flat();
  const holding = parts.find((steps) => steps.every(({ verdict }) => verdict === 'pass'));
  return holding ?? parts[0] ?? [];
}

function findOnly(issuers: ReadonlyMap<string, IssuerRules>): IssuerRules | undefined {
  return issuers.size === 1 ? [...issuers.values()][0] : undefined;
}
