import { hash } from 'node:crypto';
import { createProofVerifier, type VerifiedProof } from './dpop/proof.ts';
import { createMemoryReplayStore } from './dpop/replay.ts';
import { AccessError, type Failure, failures, type Reason } from './failures.ts';
import { confirmCertificate, createReadClientCertificate } from './http/client-certificate.ts';
import { type Credentials, readCredentials, type Scheme } from './http/credentials.ts';
import { errorBodyFormats } from './http/error-body.ts';
import { createReadExternalUrl, type ExternalUrl } from './http/external-url.ts';
import { createDescribeRefusal, type DescribeRefusal, type RefusalContext } from './http/refusal.ts';
import type { Connection, ResourceRequest } from './http/request.ts';
import type { Introspection } from './introspection/introspection.ts';
import { createIssuers, type Issuers } from './issuers/issuer-list.ts';
import { readIssuerName } from './issuers/issuer-name.ts';
import { readTokenRules } from './issuers/trusted-issuer.ts';
import { createKeySet } from './keys/key-set.ts';
import { type CheckedPolicy, checkPolicy, grantClaims, type Verdict } from './policy/checked-policy.ts';
import type { Policy } from './policy/policy.ts';
import { checkOptions, type ResourceServerEvent, type ResourceServerOptions } from './resource-server-options.ts';
import { type AccessTokenRules, type ValidToken, verifyAccessToken } from './token/access-token.ts';
import type { Claims } from './token/claims.ts';
import type { CertificateBinding } from './token/confirmation.ts';
import { verifyIntrospectedToken } from './token/introspected-token.ts';
import type { JsonObject } from './token/json.ts';
import { createTokenCache, type TokenCacheStatus } from './token/token-cache.ts';
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

/** The gate: judges requests, and answers those it refuses. */
export interface ResourceServer {
  /**
   * Judges a request. Returns at once where nothing has to be waited for; a promise where keys must be fetched, the
   * replay store is remote, or a schema waits. Throws (or rejects with) `AccessError`; `TypeError` for a policy that
   * cannot work. Without a policy any valid token will do. A policy is read once: later changes are not looked at.
   */
  authorize<C = Claims>(
    request: ResourceRequest,
    policy?: Policy<C>,
    connection?: Connection,
  ): Access<C> | Promise<Access<C>>;
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

type Judged = Access<unknown> | Promise<Access<unknown>>;

const anyToken = checkPolicy({});

/** What happens where the keys of an issuer must be fetched first. */
type OnMissingKeys = (refusal: AccessError) => Judged;

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
export function createResourceServer(options: ResourceServerOptions): ResourceServer {
  checkOptions(options);
  const { mode = 'allowed', algorithms: proofAlgorithms = ['ES256'], nonces } = options.dpop ?? {};
  const now = options.now ?? (() => Date.now() / 1000);
  const replay = options.dpop?.replay ?? createMemoryReplayStore({ now });
  const emit = options.onEvent === undefined ? undefined : createEmit(options.onEvent);
  const { introspection, denyList, clientCertificate, trustProxy = 'none' } = options;
  const readCertificate =
    clientCertificate === undefined ? undefined : createReadClientCertificate(clientCertificate, trustProxy);
  const certificates = readCertificate === undefined ? 'off' : 'on';
  const issuers = openIssuers(options, certificates, emit);
  // Opaque tokens alone: then there is no list that the issuer could be missing from.
  const opaqueRules = introspection !== undefined && isEmptyList(options.issuers) ? readTokenRules(options) : undefined;
  const cache = options.tokenCache === 'off' ? undefined : createTokenCache(options.tokenCache);
  const readExternalUrl = createReadExternalUrl({ trust: trustProxy });
  const errorBody =
    typeof options.errorBody === 'function' ? options.errorBody : errorBodyFormats[options.errorBody ?? 'detail'];
  const verifyProof = createProofVerifier({ algorithms: proofAlgorithms, nonces });

  const judge = (item: Case, rules: AccessTokenRules, onMissingKeys: OnMissingKeys): Judged => {
    const { token } = item.credentials;
    const seconds = now();
    const digest = hash('sha256', token, 'base64url');
    const known = cache?.find(digest, rules.issuers, seconds);
    const verified = known ?? verifyAccessToken(token, rules, seconds);
    if (verified instanceof AccessError) return onMissingKeys(verified);
    if (known === undefined) cache?.remember(digest, verified, token.length);
    return decide(item, verified, { ath: digest, now: seconds });
  };

  /** What is left to judge of a valid token: that it was not withdrawn, is sent by its owner, and allows what is asked. */
  const decide = (item: Case, token: ValidToken, facts: Facts): Judged => {
    if (denyList?.denies(token.claims, token.verifiedBy.kid)) throw new AccessError('revoked_token');
    const proof = verifyBinding(item, token, facts);
    const verdict = judgePolicies(item.policy, token, facts.now);
    return verdict instanceof Promise
      ? verdict.then((settled) => admit(grantClaims(settled, token), token, proof))
      : admit(grantClaims(verdict, token), token, proof);
  };

  /** The proof, for a token that is bound to a key; `undefined` for one that is not. */
  const verifyBinding = (item: Case, { jkt, certificate }: ValidToken, facts: Facts): VerifiedProof | undefined => {
    const { request, connection, url } = item;
    const { proof } = item.credentials;
    if (certificate !== undefined) confirmCertificate(certificate, readCertificate?.(request, connection));
    if (proof === undefined) {
      if (jkt !== undefined) throw new AccessError('bound_token_as_bearer');
      return undefined;
    }
    if (jkt === undefined) throw new AccessError('unbound_token_as_dpop');
    return verifyProof({ proof, method: request.method, url, jkt, ...facts });
  };

  const admit = (claims: unknown, { scopes, jkt }: ValidToken, proof: VerifiedProof | undefined): Judged => {
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
    return typeof first === 'boolean' ? admitFirst(first, access) : first.then((answer) => admitFirst(answer, access));
  };

  const judgeByAsking = (item: Case, rules: AccessTokenRules, asked: Introspection): Judged => {
    const { token } = item.credentials;
    const { issuer, audience } = asked;
    // Before the issuer is asked: it must be one that is trusted for this request.
    const tokenRules = rules.issuers.get(issuer) ?? opaqueRules;
    if (tokenRules === undefined) throw new AccessError('invalid_issuer');
    const digest = hash('sha256', token, 'base64url');
    const judgeAnswer = (answer: JsonObject): Judged => {
      const seconds = now();
      const valid = verifyIntrospectedToken(answer, { token: tokenRules, issuer, audience, certificates }, seconds);
      return decide(item, valid, { ath: digest, now: seconds });
    };
    const answer = asked.introspect(token, digest);
    return answer instanceof Promise ? answer.then(judgeAnswer) : judgeAnswer(answer);
  };

  const judgeWithKeys = (item: Case, rules: AccessTokenRules): Judged => {
    if (introspection?.handles(item.credentials.token)) return judgeByAsking(item, rules, introspection);
    return judge(item, rules, (refusal) => {
      const fetched = refetchKeys(refusal, rules);
      if (fetched === undefined) throw refusal;
      return fetched.then(() => judge(item, rules, refuseNow));
    });
  };

  const authorize = (request: ResourceRequest, policy: CheckedPolicy, connection: Connection | undefined): Judged => {
    // Host and forwarded headers are held to their grammar always, whatever is made of them (RFC 9112 §3.2).
    const url = readExternalUrl(request, connection);
    const credentials = readCredentials(request.headers, mode);
    const item: Case = { request, connection, url, credentials, policy };
    const rules = issuers.find(request, url);
    return rules instanceof Promise ? rules.then((found) => judgeWithKeys(item, found)) : judgeWithKeys(item, rules);
  };

  const traced = <C>(request: ResourceRequest, policy?: Policy<C>, connection?: Connection) => {
    const checked = policy === undefined ? anyToken : checkPolicy(policy);
    const access = traceAuthorize(() => authorize(request, checked, connection));
    return access as Access<C> | Promise<Access<C>>; // the schema of the policy has given these claims
  };

  const describeRefusal = createDescribeRefusal({
    challenge: {
      style: options.challenge ?? 'full',
      mode,
      realm: [...issuers.audiences].join(' '),
      proofAlgorithms,
    },
    errorBody,
    statuses: readStatuses(options.insufficientScopeStatus),
    readExternalUrl,
    issueNonce: () => nonces?.issue(now()),
  });
  return {
    authorize: emit === undefined ? traced : watchRefusals(traced, emit),
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

type Emit = (event: ResourceServerEvent) => void;

function createEmit(onEvent: Emit): Emit {
  return (event) => {
    try {
      onEvent(event);
    } catch {
      // A logger that fails must not cost the request.
    }
  };
}

/** Tells of every refusal, whether it comes at once or later. */
function watchRefusals(authorize: ResourceServer['authorize'], emit: Emit): ResourceServer['authorize'] {
  const tell = (error: unknown, method: string): void => {
    const known = error instanceof AccessError;
    emit({
      type: 'refused',
      reason: known ? error.reason : 'unexpected',
      method,
      context: known ? error.context : undefined,
      cause: known ? error.cause : error,
    });
  };
  return (request, policy, connection) => {
    const { method } = request;
    try {
      const access = authorize(request, policy, connection);
      if (!(access instanceof Promise)) return access;
      return access.catch((error: unknown) => {
        tell(error, method);
        throw error;
      });
    } catch (error) {
      tell(error, method);
      throw error;
    }
  };
}

function isEmptyList(issuers: unknown): boolean {
  return Array.isArray(issuers) && issuers.length === 0;
}

function openIssuers(
  options: ResourceServerOptions,
  certificates: CertificateBinding,
  emit: Emit | undefined,
): Issuers {
  const { issuer, issuers = [], keys, fetch, ca, keysStale } = options;
  const single =
    issuer === undefined ? undefined : { issuer: readIssuerName(issuer), ...(keys !== undefined && { keys }) };
  return createIssuers({
    issuers: single === undefined ? issuers : [single],
    rules: options,
    certificates,
    openKeys: (name) =>
      createKeySet({
        issuer: name,
        ...(fetch !== undefined && { fetch }),
        ...(ca !== undefined && { ca }),
        ...(keysStale !== undefined && { staleSeconds: keysStale }),
        ...(emit !== undefined && { onEvent: (event) => emit({ type: 'keys', issuer: name, event }) }),
      }),
  });
}

function admitFirst(first: boolean, access: Access<unknown>): Access<unknown> {
  if (!first) throw new AccessError('proof_replayed');
  return access;
}

function refuseNow(refusal: AccessError): never {
  throw refusal;
}

/** Fetches the keys whose want caused the refusal; `undefined` where that is not allowed now. */
function refetchKeys({ context }: AccessError, { issuers }: AccessTokenRules): Promise<void> | undefined {
  const issuer = context?.['issuer'];
  return typeof issuer === 'string' ? issuers.get(issuer)?.keys.refetch() : undefined;
}
