import { attempt } from '../attempt.ts';
import { createProofVerifier } from '../dpop/proof.ts';
import { createMemoryReplayStore } from '../dpop/replay.ts';
import { type AccessError, type Failure, failures, type Reason } from '../failures.ts';
import { createReadClientAddress } from '../http/client-address.ts';
import { createReadClientCertificate } from '../http/client-certificate.ts';
import { createReadExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { pickByPlatform } from '../platform.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import { errorBodyFormats } from '../refusal/error-body.ts';
import { createDescribeRefusal, type DescribeRefusal, type RefusalContext } from '../refusal/refusal.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { createTokenCache, type TokenCacheStatus } from '../token/token-cache.ts';
import { createRefuseDenied } from '../token-status/deny-check.ts';
import { type Access, isAccess } from './access.ts';
import { type Emit, watchRefusals } from './events.ts';
import { openIssuers } from './issuers.ts';
import { createJudge, type JudgementRules } from './judgement.ts';
import { checkOptions, type ResourceServerOptions, type Subject } from './options.ts';
import { recordServer } from './own-server.ts';
import { openServerNonces } from './server-nonces.ts';
import { readTokenRules } from './token-rules.ts';
import { traceAuthorize } from './tracing.ts';
import { hasTestIssuer } from './trusted-issuer.ts';

export type { Access } from './access.ts';

declare const handed: unique symbol;

/** The claims that handlers get if no schema says otherwise. */
export type ClaimsOf<S extends Subject> = 'optional' extends S ? RegisteredClaims : Claims;

/** The gate: judges requests, and answers those it refuses. `D` are the claims that handlers get without a schema. */
export interface ResourceServer<D extends RegisteredClaims = Claims> {
  /** For the compiler only: the claims that handlers get without a schema. */
  readonly [handed]?: D;
  /**
   * Judges a request. Always a promise, so that a linter sees a forgotten `await`. Rejects with `AccessError` for a request
   * that is refused, and with `TypeError` for a policy that cannot work. Without a policy any valid token will do. A
   * policy is read once: later changes are not looked at.
   */
  authorize<C = D>(
    request: ResourceRequest,
    policy?: Policy<C>,
    connection?: Connection,
  ): Promise<Access<HandedClaims<C, D>>>;
  /**
   * The same judgement with the refusal as a value, and at once if there is nothing to wait for. A promise if keys must be
   * fetched, the replay store is remote, or a schema waits. Throws (or rejects) for defects only. For adapters, which admit
   * a request only if this copy of the package has granted the access; your own adapter calls `authorize`.
   */
  judge<C = D>(
    request: ResourceRequest,
    policy?: Policy<C>,
    connection?: Connection,
  ): MaybePromise<Access<HandedClaims<C, D>> | AccessError>;
  /** Answers a refused request. */
  refuse(error: unknown, request: ResourceRequest, context?: RefusalContext): Response;
  /** The same answer for frameworks that do not send a web-standard `Response`. */
  readonly describeRefusal: DescribeRefusal;
  /**
   * Resolves when tokens of every issuer can be judged: the keys are there. Rejects with the `ProviderError` of the first
   * that fails, which goes on trying by itself. Issuers that a resolver names are not waited for.
   */
  ready(): Promise<void>;
  /** Ends the fetches and the refreshing of the key sets that this server opened. */
  close(): void;
  /** `undefined` where the cache is off. */
  tokenCacheStatus(): TokenCacheStatus | undefined;
}

const anyToken = checkPolicy({});

/** On workerd the next call meets another isolate: asking for a nonce of this one would help nobody. */
const memoryDefaults = pickByPlatform<{ readonly since?: number }>({ workerd: { since: 0 }, others: {} });

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
  const { mode = 'allowed', algorithms: proofAlgorithms = ['ES256'] } = options.dpop ?? {};
  const now = options.now ?? (() => Date.now() / 1000);
  const replay =
    options.dpop?.replay ??
    createMemoryReplayStore({ now, ...(hasTestIssuer(options) ? { since: 0 } : memoryDefaults) });
  const nonces = openServerNonces({ ...options.dpop, replay }, now);
  const { onEvent } = options;
  const emit: Emit | undefined = onEvent && ((event) => void attempt(onEvent, event));
  const { introspection, denyList, clientCertificate, trustProxy = 'none' } = options;
  const readCertificate =
    clientCertificate === undefined ? undefined : createReadClientCertificate(clientCertificate, trustProxy);
  const certificates = readCertificate === undefined ? 'off' : 'on';
  const cache = options.tokenCache === 'off' ? undefined : createTokenCache(options.tokenCache);
  const issuers = openIssuers(options, { certificates, emit, cache });
  // Only opaque tokens: then there is no list that the issuer could be missing from.
  const opaqueRules = introspection !== undefined && isEmptyList(options.issuers) ? readTokenRules(options) : undefined;
  const readExternalUrl = createReadExternalUrl({
    trust: trustProxy,
    ...(options.externalUrl !== undefined && { pinned: options.externalUrl }),
  });
  const errorBody =
    typeof options.errorBody === 'function' ? options.errorBody : errorBodyFormats[options.errorBody ?? 'detail'];
  const rules: JudgementRules = {
    mode,
    readExternalUrl,
    issuers,
    cache,
    introspection,
    readClientAddress: createReadClientAddress(trustProxy),
    opaqueRules,
    refuseDenied: denyList === undefined ? undefined : createRefuseDenied(denyList),
    readCertificate,
    certificates,
    verifyProof: createProofVerifier({ algorithms: proofAlgorithms, nonces: nonces.demanded }),
    proofAlgorithms: new Set(proofAlgorithms),
    replay,
    nonces,
    now,
  };
  const judgeRequest = createJudge(rules);
  const traced = (request: ResourceRequest, policy?: Policy<unknown>, connection?: Connection) => {
    const checked = policy === undefined ? anyToken : checkPolicy(policy);
    return traceAuthorize(() => judgeRequest(request, checked, connection));
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
    issueNonce: nonces.issueFor,
  });
  const server: ResourceServer = {
    judge,
    authorize: async (request, policy, connection) => {
      const judged = await judge(request, policy, connection);
      if (isAccess(judged)) return judged;
      throw judged;
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
  recordServer(server, rules);
  return server;
}

function readStatuses(status: 401 | 403 = 403): ReadonlyMap<Reason, number> {
  const rows = Object.entries<Failure>(failures) as [Reason, Failure][]; // the keys of the table are the reasons
  return new Map(rows.filter(([, { error }]) => error === 'insufficient_scope').map(([reason]) => [reason, status]));
}

function isEmptyList(issuers: unknown): boolean {
  return Array.isArray(issuers) && issuers.length === 0;
}
