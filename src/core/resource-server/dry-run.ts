/**
 * A dry run of the authorization: it runs every check, even after a failed one, as far as the check has inputs. It uses the
 * records and functions of the authorization, in the same order, and changes nothing: it caches no token, fetches no key,
 * queries no issuer, consumes no proof and counts nothing.
 *
 * An explanation starts here. `steps` are in the order of `checks` (checks.ts), and the first failed step has the reason of
 * `judge`. `gathered` has the inputs of the steps.
 */
import { hash } from 'node:crypto';
import { importProofKey, judgeNonce, readProof, readProofClaims } from '../dpop/proof.ts';
import { proofClaimChecks, proofHeaderChecks, proofKeyChecks } from '../dpop/proof-checks.ts';
import type { Reason } from '../failures.ts';
import { type Credentials, readCredentials } from '../http/credentials.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { isJsonObject, type JsonObject } from '../jose/json.ts';
import { isKid, type Jws, readAlg, verifyJws } from '../jose/jws.ts';
import type { KeySet } from '../keys/key-set.ts';
import { Refused } from '../refused.ts';
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
import {
  bindingChecks,
  type Confirmation,
  claimChecks,
  profileChecks,
  type RegisteredClaims,
  readConfirmation,
  readRegistered,
} from '../token/claims.ts';
import { readScopes } from '../token/grants.ts';
import type { CheckedPolicy, PolicyFacts } from '../token/token-policy.ts';
import { findIntrospections, type JudgementRules } from './judgement.ts';
import { openWalk, type Step, type Walk } from './walk.ts';

export interface DryCall {
  readonly request: ResourceRequest;
  readonly policy: CheckedPolicy;
  readonly connection: Connection | undefined;
  /** Seconds since the epoch. */
  readonly now: number;
  /** Keys that replace the server's own. */
  readonly keys?: KeySet | undefined;
}

export interface DryRun {
  readonly verdict: 'admitted' | 'refused' | 'undecided';
  /** Reason of the first failed step; `undefined` if none failed. */
  readonly reason: Reason | undefined;
  readonly steps: readonly Step[];
  readonly gathered: Gathered;
}

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

/** Makes every step of an authorization. Rejects with errors of issuer resolvers and schemas. */
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
  if (lenient instanceof Refused) return;
  g.credentials = lenient;
  g.ath = hash('sha256', lenient.token, 'base64url');
  const text = (await rules.decryption?.decrypt(lenient.token)) ?? lenient.token;
  if (text instanceof Refused) {
    walk.stage('shape', text);
    return;
  }
  const trusted = await rules.issuers.find(request, url, text);
  if (trusted instanceof Refused) throw trusted.toError();
  g.trusted = trusted;
  const asked = findIntrospections(rules, text, trusted);
  if (asked.length > 0) {
    const isTrusted = asked.some(({ issuer }) => trusted.issuers.has(issuer)) || rules.opaqueRules !== undefined;
    walk.stage('introspection', isTrusted ? 'unknown' : new Refused('invalid_issuer'));
    return;
  }
  await walkToken(walk, g, text);
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
  const kid = isKid(header['kid']) ? header['kid'] : undefined;
  const withdrawable = { claims: claims as RegisteredClaims, verifiedBy: { issuer: assumed, kid } }; // these steps take any claims
  for (const { id, refuse } of rules.withdrawal) {
    const refusal = await refuse(withdrawable);
    // Outside the service its cutoffs are unknown.
    const isUnknown = id === 'revocation' && rules.revocations?.isLoaded() === false;
    walk.stage(id, refusal ?? (isUnknown ? 'unknown' : true));
  }
}

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
  return walk.stage('signature', isSigned ? true : new Refused('invalid_signature')) === true;
}

/** Returns `unknown` without keys, because the signature cannot be verified. */
function withoutKeys<T>(found: T | Refused): T | Refused | 'unknown' {
  return found instanceof Refused && found.reason === 'keys_unavailable' ? 'unknown' : found;
}

function walkBinding(walk: Walk, g: Gathered): void {
  const { rules, call, confirmation, credentials } = g;
  if (confirmation === undefined || credentials === undefined) return;
  const { certificate } = confirmation;
  if (certificate !== undefined) {
    const presented = rules.readCertificate?.(call.request, call.connection);
    walk.stage('client_certificate', presented ?? true);
    if (presented instanceof Refused) return;
    if (presented !== undefined) g.presented = presented;
  }
  const facts = { ...confirmation, presented: g.presented, scheme: credentials.scheme };
  for (const check of bindingChecks) {
    // A token without a certificate has none to present.
    if (check.group === 'certificate' && certificate === undefined) walk.skip(check.id);
    else walk.checks([check], facts);
  }
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
      walk.stage('proof_signature', isSigned ? true : new Refused('invalid_proof_signature'));
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
    claims: readRegistered(claims), // the checks of a policy take any value of any claim
    scopes: readScopes(claims, issuer.scopeClaim),
    verifiedBy: { issuer },
  };
  const facts: PolicyFacts = { token, now: call.now, bindings: call.request.bindings };
  for (const policy of [issuer.policy, call.policy]) {
    if (policy !== undefined) for (const step of await walkPolicy(policy, facts, g)) walk.add(step);
  }
}

/** Returns the steps of a policy. For alternatives: the steps of the part that holds, or else of the first. */
async function walkPolicy({ made }: CheckedPolicy, facts: PolicyFacts, g: Gathered): Promise<readonly Step[]> {
  if (made.of === 'stage') {
    const { id, refusal, received } = made;
    const verdict = refusal === undefined ? 'pass' : 'fail';
    return [{ id, verdict, reason: refusal?.reason, refusal, comparison: { received } }];
  }
  if (made.of === 'checks') {
    const walk = openWalk();
    walk.checks(made.checks, facts);
    // A schema is the caller's own code: it gets only claims that a trusted issuer has signed.
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
