import { hash } from 'node:crypto';
import { addEvidence, refuseByFirst } from '../check.ts';
import type { VerifiedProof, VerifyProof } from '../dpop/proof.ts';
import type { ReplayStore, Witnessed } from '../dpop/replay.ts';
import { AccessError } from '../failures.ts';
import type { ReadClientAddress } from '../http/client-address.ts';
import type { ReadClientCertificate } from '../http/client-certificate.ts';
import { type Credentials, type DpopMode, readCredentials } from '../http/credentials.ts';
import type { ExternalUrl, ReadExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { JsonObject } from '../jose/json.ts';
import { after, type MaybePromise, rescue, settle } from '../maybe-promise.ts';
import { type AccessTokenRules, type TokenRules, type ValidToken, verifyAccessToken } from '../token/access-token.ts';
import { bindingChecks, type CertificateBinding } from '../token/confirmation.ts';
import { verifyIntrospectedToken } from '../token/introspected-token.ts';
import type { TokenCache } from '../token/token-cache.ts';
import type { CheckedPolicy, Verdict } from '../token/token-policy.ts';
import type { RefuseDenied } from '../token-status/deny-check.ts';
import type { Introspection } from '../token-status/introspection.ts';
import { type Access, grantAccess } from './access.ts';
import type { Issuers } from './issuer-list.ts';
import { createRefetchKeys } from './key-refetch.ts';
import type { ServerNonces } from './server-nonces.ts';

/** What one resource server judges by. */
export interface JudgementRules {
  readonly mode: DpopMode;
  readonly readExternalUrl: ReadExternalUrl;
  readonly issuers: Pick<Issuers, 'find' | 'confirm'>;
  readonly cache: TokenCache | undefined;
  readonly introspection: Introspection | undefined;
  readonly readClientAddress: ReadClientAddress;
  /** Rules for the tokens of the introspected issuer, if it is not among the trusted ones. */
  readonly opaqueRules: TokenRules | undefined;
  readonly refuseDenied: RefuseDenied | undefined;
  readonly readCertificate: ReadClientCertificate | undefined;
  readonly certificates: CertificateBinding;
  readonly verifyProof: VerifyProof;
  /** `alg` values that are accepted in proofs. */
  readonly proofAlgorithms: ReadonlySet<string>;
  readonly replay: ReplayStore | 'off';
  readonly nonces: ServerNonces;
  /** Seconds since the epoch. */
  readonly now: () => number;
}

/** Judges a request: what it may do, or why it is refused. Throws, or rejects with, defects only. */
export type Judge = (
  request: ResourceRequest,
  policy: CheckedPolicy,
  connection: Connection | undefined,
) => MaybePromise<Judged>;

type Judged = Access<unknown> | AccessError;

/** One request on its way. */
interface Call {
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
  readonly policy: CheckedPolicy;
  readonly url: ExternalUrl;
  readonly credentials: Credentials;
}

/** A token that is valid at a moment. */
interface Verified {
  readonly token: ValidToken;
  /** Seconds since the epoch. */
  readonly now: number;
}

/** A valid token and the call that it came with. */
interface Owned {
  readonly token: ValidToken;
  readonly call: Call;
}

/** The same for a token that is bound to a key, with its proof. */
interface Proven extends Owned {
  readonly proof: VerifiedProof;
}

/** The way of a request, from top to bottom. Each step refuses, or goes on; it waits only if there is something to wait for. */
export function createJudge(rules: JudgementRules): Judge {
  const { mode, readExternalUrl, issuers, cache, introspection, refuseDenied, verifyProof, replay, nonces, now } =
    rules;
  const refetchKeys = createRefetchKeys(rules.readClientAddress, now);

  const judge: Judge = (request, policy, connection) => {
    // Host and forwarded headers are held to their grammar always, whatever is made of them (RFC 9112 §3.2).
    const url = readExternalUrl(request, connection);
    if (url instanceof AccessError) return url;
    const credentials = readCredentials(request.headers, mode);
    if (credentials instanceof AccessError) return credentials;
    const call: Call = { request, connection, policy, url, credentials };
    return after(issuers.find(request, url, credentials.token), judgeToken, call);
  };

  const judgeToken = (trusted: AccessTokenRules, call: Call): MaybePromise<Judged> => {
    const asked = introspection?.handles(call.credentials.token) ? introspection : undefined;
    const verified = asked === undefined ? verifyByKeys(trusted, call) : verifyByAsking(trusted, call, asked);
    return after(verified, judgeUse, call);
  };

  /** What is left to judge of a valid token: that it was not withdrawn, is sent by its owner, and allows what is asked. */
  const judgeUse = (verified: Verified | AccessError, call: Call): MaybePromise<Judged> => {
    if (verified instanceof AccessError) return verified;
    if (refuseDenied === undefined) return judgeOwner(verified, call);
    const { claims, verifiedBy } = verified.token;
    const judgeAllowed = (refusal: AccessError | undefined): MaybePromise<Judged> =>
      refusal === undefined ? judgeOwner(verified, call) : attest(refusal, verified.token);
    return after(refuseDenied(claims, verifiedBy.kid), judgeAllowed, undefined);
  };

  const judgeOwner = (verified: Verified, call: Call): MaybePromise<Judged> => {
    const { token } = verified;
    const proof = verifyBinding(verified, call);
    if (proof instanceof AccessError) return attest(proof, token);
    const verdict = judgePolicies(call.policy, verified);
    return proof === undefined
      ? after(verdict, admitBearer, { token, call })
      : after(verdict, judgeReplay, { token, proof, call });
  };

  /** The last check of all: only a proof that would have been accepted is remembered. */
  const judgeReplay = (verdict: Verdict, proven: Proven): MaybePromise<Judged> => {
    const { token, proof, call } = proven;
    if (verdict instanceof AccessError) return attest(verdict, token);
    const access = grantAccess(proven, verdict, proof.nonce);
    if (replay === 'off' || call.request.proofWitnessed === true) return access;
    const first = replay.witness(proof.jkt, proof.jti, proof.expires, nonces.reader(proof.sentNonce));
    const admitFirst = (answer: Witnessed): Judged => {
      if (answer instanceof AccessError) return nonces.refuse(answer);
      return answer === true ? access : attest(new AccessError('proof_replayed'), token);
    };
    return settle(() => first, admitFirst, refuseUnwitnessed);
  };

  /** By the keys of the issuer; if the one that the token names is not there, they are fetched once. */
  function verifyByKeys(trusted: AccessTokenRules, call: Call): MaybePromise<Verified | AccessError> {
    const verified = verifyAtHand(trusted, call);
    const fetched = verified instanceof AccessError ? refetchKeys(verified, trusted, call) : undefined;
    return fetched === undefined ? verified : fetched.then(() => verifyAtHand(trusted, call));
  }

  function verifyAtHand(trusted: AccessTokenRules, { credentials: { token: text } }: Call): Verified | AccessError {
    const seconds = now();
    const known = cache?.find(text, trusted.issuers, seconds);
    const token = known ?? verifyAccessToken(text, trusted, seconds);
    if (token instanceof AccessError) return token;
    issuers.confirm(token.verifiedBy.issuer);
    if (known === undefined) cache?.remember(text, token);
    return { token, now: seconds };
  }

  /** By asking the issuer, which must be one that is trusted for this request. */
  function verifyByAsking(
    trusted: AccessTokenRules,
    { request, connection, credentials }: Call,
    asked: Introspection,
  ): MaybePromise<Verified | AccessError> {
    const { issuer, audience } = asked;
    const token = trusted.issuers.get(issuer) ?? rules.opaqueRules;
    if (token === undefined) return new AccessError('invalid_issuer');
    const { certificates } = rules;
    const judgeAnswer = (answer: JsonObject | AccessError): Verified | AccessError => {
      if (answer instanceof AccessError) return answer;
      const seconds = now();
      const valid = verifyIntrospectedToken(answer, { token, issuer, audience, certificates }, seconds);
      return valid instanceof AccessError ? valid : { token: valid, now: seconds };
    };
    return after(
      asked.introspect(credentials.token, hashToken(credentials.token), rules.readClientAddress(request, connection)),
      judgeAnswer,
      undefined,
    );
  }

  /** The proof, for a token that is bound to a key; `undefined` for one that is not. */
  function verifyBinding({ token, now }: Verified, call: Call): VerifiedProof | AccessError | undefined {
    const { request, url, credentials } = call;
    const { jkt, certificate } = token;
    // Bound to nothing, and nothing was proven: there is nothing to check.
    if (jkt === undefined && certificate === undefined && credentials.scheme === 'Bearer') return undefined;
    const presented = certificate === undefined ? undefined : rules.readCertificate?.(request, call.connection);
    if (presented instanceof AccessError) return presented;
    const refusal = refuseByFirst(bindingChecks, { jkt, certificate, presented, scheme: credentials.scheme });
    if (refusal !== undefined || jkt === undefined || credentials.proof === undefined) return refusal;
    const ath = hashToken(credentials.token);
    return verifyProof({ proof: credentials.proof, method: request.method, url, jkt, ath, now });
  }

  return (request, policy, connection) => {
    try {
      return rescue(judge(request, policy, connection), returnRefusal);
    } catch (error) {
      return returnRefusal(error);
    }
  };
}

/** What the issuer asks of all its tokens comes first; its schema judges, and gives nothing. */
function judgePolicies(policy: CheckedPolicy, verified: Verified): MaybePromise<Verdict> {
  const general = verified.token.verifiedBy.issuer.policy;
  if (general === undefined) return policy.judge(verified);
  const judgeRoute = (verdict: Verdict): MaybePromise<Verdict> =>
    verdict instanceof AccessError ? verdict : policy.judge(verified);
  return after(general.judge(verified), judgeRoute, undefined);
}

/** base64url of the SHA-256 of an access token: what `ath` of a proof must be (RFC 9449 §4.2). */
function hashToken(token: string): string {
  return hash('sha256', token, 'base64url');
}

/** Whose call a refusal is about: its token was good. */
function attest(refusal: AccessError, { claims, verifiedBy: { kid } }: ValidToken): AccessError {
  return addEvidence(refusal, { claims, kid });
}

function admitBearer(verdict: Verdict, owned: Owned): Judged {
  return verdict instanceof AccessError ? attest(verdict, owned.token) : grantAccess(owned, verdict, undefined);
}

/** A store of the caller's own may fail with any error: nobody was let in, and the client may try again. */
function refuseUnwitnessed(cause: unknown): AccessError {
  return cause instanceof AccessError ? cause : new AccessError('replay_store_unavailable', { cause });
}

/** What the caller's own code throws (a resolver, a store, a schema) may be a refusal as well. */
function returnRefusal(error: unknown): AccessError {
  if (error instanceof AccessError) return error;
  throw error;
}
