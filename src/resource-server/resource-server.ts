import { hash } from 'node:crypto';
import { createProofVerifier, type VerifiedProof } from '../dpop/proof.ts';
import { createMemoryReplayStore } from '../dpop/replay.ts';
import { AccessError, type Failure, failures, type Reason } from '../failures.ts';
import { confirmCertificate, createReadClientCertificate } from '../http/client-certificate.ts';
import { type Credentials, readCredentials, type Scheme } from '../http/credentials.ts';
import { createReadExternalUrl, type ExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { JsonObject } from '../jose/json.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import { errorBodyFormats } from '../refusal/error-body.ts';
import { createDescribeRefusal, type DescribeRefusal, type RefusalContext } from '../refusal/refusal.ts';
import { type AccessTokenRules, type ValidToken, verifyAccessToken } from '../token/access-token.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { verifyIntrospectedToken } from '../token/introspected-token.ts';
import { createTokenCache, type TokenCacheStatus } from '../token/token-cache.ts';
import type { CheckedPolicy, Verdict } from '../token/token-policy.ts';
import { createRefuseDenied } from '../token-status/deny-check.ts';
import type { Introspection } from '../token-status/introspection.ts';
import { createEmit, watchRefusals } from './events.ts';
import { openIssuers } from './issuers.ts';
import { checkOptions, type ResourceServerOptions, type Subject } from './options.ts';
import { readTokenRules } from './token-rules.ts';
import { traceAuthorize } from './tracing.ts';

/** What a judged request may do: handed to the handler. */
export interface Access<C = Claims> {
  /** Those of the token, or what the schema of the policy has given. */
  readonly claims: C;
  /** The elements of `scope`. */
  readonly scopes: ReadonlySet<string>;
  readonly scheme: Scheme;
  /** A fresh nonce that the answer should carry in `DPoP-Nonce` (RFC 9449 §8.2). */
  readonly dpopNonce?: string;
}

declare const handed: unique symbol;

/** The claims that handlers get if no schema says otherwise. */
export type ClaimsOf<S extends Subject> = 'optional' extends S ? RegisteredClaims : Claims;

/** The gate: judges requests, and answers those it refuses. `D` are the claims that handlers get without a schema. */
export interface ResourceServer<D extends RegisteredClaims = Claims> {
  /** For the compiler only: the claims that handlers get without a schema. */
  readonly [handed]?: D;
  /**
   * Judges a request. Returns at once where nothing has to be waited for; a promise where keys must be fetched, the
   * replay store is remote, or a schema waits. Throws (or rejects with) `AccessError`; `TypeError` for a policy that
   * cannot work. Without a policy any valid token will do. A policy is read once: later changes are not looked at.
   */
  authorize<C = D>(
    request: ResourceRequest,
    policy?: Policy<C>,
    connection?: Connection,
  ): Access<C> | Promise<Access<C>>;
  /**
   * The same judgement with the refusal as a value: a throw costs more than most of what is judged, and whoever sends
   * nonsense decides how often. Throws (or rejects) only for defects.
   */
  judge<C = D>(
    request: ResourceRequest,
    policy?: Policy<C>,
    connection?: Connection,
  ): Access<C> | AccessError | Promise<Access<C> | AccessError>;
  /** Answers a refused request. */
  refuse(error: unknown, request: ResourceRequest, context?: RefusalContext): Response;
  /** The same answer for frameworks that do not send a web-standard `Response`. */
  readonly describeRefusal: DescribeRefusal;
  /**
   * Resolves when tokens of every issuer can be judged: the keys are there. Rejects with the `KeyFetchError` of the first
   * that fails, which goes on trying by itself. Issuers that a resolver names are not waited for.
   */
  ready(): Promise<void>;
  /** Ends the fetches and the refreshing of the key sets that this server opened. */
  close(): void;
  /** `undefined` where the cache is off. */
  tokenCacheStatus(): TokenCacheStatus | undefined;
}

type Judged = Access<unknown> | AccessError | Promise<Access<unknown> | AccessError>;

const anyToken = checkPolicy({});

/** What one judgement is made of. */
interface Case {
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
  readonly url: ExternalUrl;
  readonly credentials: Credentials;
  readonly policy: CheckedPolicy;
}

/** What a proof is held against besides the request. */
interface Facts {
  readonly ath: string;
  /** Seconds since the epoch. */
  readonly now: number;
}

/**
 * Creates a resource server. Nothing is fetched before `ready()` or the first token. Throws `TypeError` for options that
 * cannot work.
 *
 * @example
 * const server = createResourceServer({ issuer: 'idp.example', audience: 'https://api.example/' });
 */
export function createResourceServer<S extends Subject = 'required'>(
  options: ResourceServerOptions<S>,
): ResourceServer<ClaimsOf<S>> {
  checkOptions(options);
  const { mode = 'allowed', algorithms: proofAlgorithms = ['ES256'], nonces } = options.dpop ?? {};
  const now = options.now ?? (() => Date.now() / 1000);
  const replay = options.dpop?.replay ?? createMemoryReplayStore({ now });
  const emit = options.onEvent === undefined ? undefined : createEmit(options.onEvent);
  const { introspection, clientCertificate, trustProxy = 'none' } = options;
  const refuseDenied = options.denyList === undefined ? undefined : createRefuseDenied(options.denyList);
  const readCertificate =
    clientCertificate === undefined ? undefined : createReadClientCertificate(clientCertificate, trustProxy);
  const certificates = readCertificate === undefined ? 'off' : 'on';
  const issuers = openIssuers(options, certificates, emit);
  // Only opaque tokens: then there is no list that the issuer could be missing from.
  const opaqueRules = introspection !== undefined && isEmptyList(options.issuers) ? readTokenRules(options) : undefined;
  const cache = options.tokenCache === 'off' ? undefined : createTokenCache(options.tokenCache);
  const readExternalUrl = createReadExternalUrl({ trust: trustProxy });
  const errorBody =
    typeof options.errorBody === 'function' ? options.errorBody : errorBodyFormats[options.errorBody ?? 'detail'];
  const verifyProof = createProofVerifier({ algorithms: proofAlgorithms, nonces });

  const judgeToken = (item: Case, rules: AccessTokenRules): Judged => {
    const { token } = item.credentials;
    const seconds = now();
    const digest = hash('sha256', token, 'base64url');
    const known = cache?.find(digest, rules.issuers, seconds);
    const verified = known ?? verifyAccessToken(token, rules, seconds);
    if (verified instanceof AccessError) return verified;
    if (known === undefined) cache?.remember(digest, verified, token.length);
    return decide(item, verified, { ath: digest, now: seconds });
  };

  /** What is left to judge of a valid token: that it was not withdrawn, is sent by its owner, and allows what is asked. */
  const decide = (item: Case, token: ValidToken, facts: Facts): Judged => {
    const refusal = refuseDenied?.(token.claims, token.verifiedBy.kid);
    return refusal instanceof Promise
      ? refusal.then((answer) => answer ?? decideOnAllowed(item, token, facts))
      : (refusal ?? decideOnAllowed(item, token, facts));
  };

  const decideOnAllowed = (item: Case, token: ValidToken, facts: Facts): Judged => {
    const proof = verifyBinding(item, token, facts);
    if (proof instanceof AccessError) return proof;
    const verdict = judgePolicies(item.policy, token, facts.now);
    return verdict instanceof Promise
      ? verdict.then((settled) => admit(settled, token, proof))
      : admit(verdict, token, proof);
  };

  /** The proof, for a token that is bound to a key; `undefined` for one that is not. Throws what a proof is refused for. */
  const verifyBinding = (
    item: Case,
    { jkt, certificate }: ValidToken,
    facts: Facts,
  ): VerifiedProof | AccessError | undefined => {
    const { request, connection, url } = item;
    const { proof } = item.credentials;
    if (certificate !== undefined) confirmCertificate(certificate, readCertificate?.(request, connection));
    if (proof === undefined) return jkt === undefined ? undefined : new AccessError('bound_token_as_bearer');
    if (jkt === undefined) return new AccessError('unbound_token_as_dpop');
    return verifyProof({ proof, method: request.method, url, jkt, ...facts });
  };

  const admit = (verdict: Verdict, token: ValidToken, proof: VerifiedProof | undefined): Judged => {
    if (verdict instanceof AccessError) return verdict;
    const { scopes, jkt } = token;
    const claims = verdict === undefined ? token.claims : verdict.claims;
    if (proof === undefined || jkt === undefined) return { claims, scopes, scheme: 'Bearer' };
    const access: Access<unknown> = {
      claims,
      scopes,
      scheme: 'DPoP',
      ...(proof.nonce !== undefined && { dpopNonce: proof.nonce }),
    };
    if (replay === 'off') return access;
    // The last check of all: only a proof that would have been accepted is remembered.
    const first = replay.witness(jkt, proof.jti, proof.expires);
    return typeof first === 'boolean'
      ? admitFirst(first, access)
      : first.then((answer) => admitFirst(answer, access), refuseUnwitnessed);
  };

  const judgeByAsking = (item: Case, rules: AccessTokenRules, asked: Introspection): Judged => {
    const { token } = item.credentials;
    const { issuer, audience } = asked;
    // Before the issuer is asked: it must be one that is trusted for this request.
    const tokenRules = rules.issuers.get(issuer) ?? opaqueRules;
    if (tokenRules === undefined) return new AccessError('invalid_issuer');
    const digest = hash('sha256', token, 'base64url');
    const judgeAnswer = (answer: JsonObject): Judged => {
      const seconds = now();
      const valid = verifyIntrospectedToken(answer, { token: tokenRules, issuer, audience, certificates }, seconds);
      return valid instanceof AccessError ? valid : decide(item, valid, { ath: digest, now: seconds });
    };
    const answer = asked.introspect(token, digest);
    return answer instanceof Promise ? answer.then(judgeAnswer) : judgeAnswer(answer);
  };

  const judgeWithKeys = (item: Case, rules: AccessTokenRules): Judged => {
    if (introspection?.handles(item.credentials.token)) return judgeByAsking(item, rules, introspection);
    const judged = judgeToken(item, rules);
    const fetched = judged instanceof AccessError ? refetchKeys(judged, rules) : undefined;
    return fetched === undefined ? judged : fetched.then(() => judgeToken(item, rules));
  };

  const judgeRequest = (
    request: ResourceRequest,
    policy: CheckedPolicy,
    connection: Connection | undefined,
  ): Judged => {
    // Host and forwarded headers are held to their grammar always, whatever is made of them (RFC 9112 §3.2).
    const url = readExternalUrl(request, connection);
    const credentials = readCredentials(request.headers, mode);
    if (credentials instanceof AccessError) return credentials;
    const item: Case = { request, connection, url, credentials, policy };
    const rules = issuers.find(request, url);
    return rules instanceof Promise ? rules.then((found) => judgeWithKeys(item, found)) : judgeWithKeys(item, rules);
  };

  const traced = (request: ResourceRequest, policy?: Policy<unknown>, connection?: Connection): Judged => {
    const checked = policy === undefined ? anyToken : checkPolicy(policy);
    return traceAuthorize(() => {
      try {
        const judged = judgeRequest(request, checked, connection);
        return judged instanceof Promise ? judged.catch(returnRefusal) : judged;
      } catch (error) {
        return returnRefusal(error);
      }
    });
  };
  const judge = (emit === undefined ? traced : watchRefusals(traced, emit)) as ResourceServer['judge']; // the schema of the policy has given these claims

  const describeRefusal = createDescribeRefusal({
    challenge: {
      style: options.challenge ?? 'full',
      mode,
      realm: issuers.realm,
      proofAlgorithms,
    },
    errorBody,
    statuses: readStatuses(options.insufficientScopeStatus),
    readExternalUrl,
    issueNonce: () => nonces?.issue(now()),
  });
  return {
    judge,
    authorize: (request, policy, connection) => {
      const judged = judge(request, policy, connection);
      return judged instanceof Promise ? judged.then(grantOrThrow) : grantOrThrow(judged);
    },
    refuse: (error, request, context) => {
      const { status, headers, body } = describeRefusal(error, request, context);
      return new Response(body, { status, headers });
    },
    describeRefusal,
    ready: () => issuers.ready(),
    close: () => issuers.close(),
    tokenCacheStatus: () => cache?.status(),
  };
}

/** What the issuer asks of all its tokens comes first; its schema judges, and gives nothing. */
function judgePolicies(policy: CheckedPolicy, token: ValidToken, now: number): Verdict | Promise<Verdict> {
  const general = token.verifiedBy.issuer.policy?.judge(token, now);
  if (general === undefined) return policy.judge(token, now);
  const goOn = (verdict: Verdict): Verdict | Promise<Verdict> =>
    verdict instanceof AccessError ? verdict : policy.judge(token, now);
  return general instanceof Promise ? general.then(goOn) : goOn(general);
}

function readStatuses(status: 401 | 403 = 403): ReadonlyMap<Reason, number> {
  const rows = Object.entries<Failure>(failures) as [Reason, Failure][]; // the keys of the table are the reasons
  return new Map(rows.filter(([, { error }]) => error === 'insufficient_scope').map(([reason]) => [reason, status]));
}

function isEmptyList(issuers: unknown): boolean {
  return Array.isArray(issuers) && issuers.length === 0;
}

function admitFirst(first: boolean, access: Access<unknown>): Access<unknown> | AccessError {
  return first ? access : new AccessError('proof_replayed');
}

/** A store of the caller's own may fail with any error: nobody was let in, and the client may try again. */
function refuseUnwitnessed(cause: unknown): AccessError {
  return cause instanceof AccessError ? cause : new AccessError('replay_store_unavailable', { cause });
}

/** Some refusals are thrown where they are found: those of the host, of proofs and of certificates. */
function returnRefusal(error: unknown): AccessError {
  if (error instanceof AccessError) return error;
  throw error;
}

function grantOrThrow<C>(judged: Access<C> | AccessError): Access<C> {
  if (judged instanceof AccessError) throw judged;
  return judged;
}

const wantOfKeys: ReadonlySet<Reason> = new Set(['unknown_kid', 'keys_unavailable']);

/** Fetches the keys whose want caused the refusal; `undefined` where it has another cause, or that is not allowed now. */
function refetchKeys({ reason, context }: AccessError, { issuers }: AccessTokenRules): Promise<void> | undefined {
  if (!wantOfKeys.has(reason)) return undefined;
  const issuer = context?.['issuer'];
  return typeof issuer === 'string' ? issuers.get(issuer)?.keys.refetch() : undefined;
}
