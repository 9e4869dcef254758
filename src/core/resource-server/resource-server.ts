import { attempt } from '../attempt.ts';
import { createProofVerifier } from '../dpop/proof.ts';
import { createMemoryReplayStore } from '../dpop/replay.ts';
import { type AccessError, type Failure, failures, type Reason } from '../failures.ts';
import { createReadClientCertificate } from '../http/client-certificate.ts';
import { createReadClientAddress, createReadExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { createDecryption } from '../introspection/decryption.ts';
import { proofAlgorithms as knownAlgorithms, readAlgorithms } from '../jose/jws.ts';
import { omitUndefined } from '../option-members.ts';
import { pickByPlatform } from '../platform.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import { errorBodyFormats } from '../refusal/error-body.ts';
import { createDescribeRefusal, type DescribeRefusal, type RefusalContext } from '../refusal/refusal.ts';
import { Refused } from '../refused.ts';
import { readRevocations } from '../revocation/revocations.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import { createTokenCache, type TokenCacheStatus } from '../token/token-cache.ts';
import { createWithdrawalSteps } from '../token/withdrawal.ts';
import { type Access, isAccess, refusalOf } from './access.ts';
import { auditDecisions, traceAuthorize, watchRefusals } from './events.ts';
import { openIssuers } from './issuers/issuer-list.ts';
import { readTokenRules, type Subject } from './issuers/token-rules.ts';
import { hasTestIssuer, isFixed } from './issuers/trusted-issuer.ts';
import { createJudge, type Judge, type JudgementRules } from './judgement.ts';
import { createRefetchKeys, createVerifyAgain } from './key-refetch.ts';
import { checkOptions, type Emit, type ResourceServerOptions } from './options.ts';
import { recordServer } from './own-server.ts';
import { openServerNonces } from './server-nonces.ts';

export type { Access } from './access.ts';

declare const handed: unique symbol;

/** The claims that handlers get if no schema says otherwise. */
export type ClaimsOf<S extends Subject> = 'optional' extends S ? RegisteredClaims : Claims;

/** Authorizes requests, and refuses those without access. `D` are the claims that handlers get without a schema. */
export interface ResourceServer<D extends RegisteredClaims = Claims> {
  /** For the compiler only: the claims that handlers get without a schema. */
  readonly [handed]?: D;
  /**
   * Authorizes a request. Always returns a promise, so that a linter detects a forgotten `await`. Rejects with `AccessError`
   * for a refused request, and with `TypeError` for an invalid policy. Without a policy any valid token is accepted. A policy
   * is read once: later changes are ignored.
   */
  authorize<C = D>(
    request: ResourceRequest,
    policy?: Policy<C>,
    connection?: Connection,
  ): Promise<Access<HandedClaims<C, D>>>;
  /**
   * Like `authorize`, with the refusal as a value that has the members of `AccessError`, is `instanceof AccessError` and is
   * not an `Error`. Rejects for defects only. For adapters, which admit a request only if this copy of the package has
   * granted the access; your own adapter calls `authorize`.
   */
  judge<C = D>(
    request: ResourceRequest,
    policy?: Policy<C>,
    connection?: Connection,
  ): Promise<Access<HandedClaims<C, D>> | AccessError>;
  /** Creates the response to a refused request. */
  refuse(error: unknown, request: ResourceRequest, context?: RefusalContext): Response;
  /** Describes a refusal for frameworks that do not send a web-standard `Response`. */
  readonly describeRefusal: DescribeRefusal;
  /**
   * Resolves when the keys of every issuer, and the package for `decryption`, are available. Rejects with the `ProviderError` of
   * the first issuer that fails; retries continue automatically. Issuers that `find` returns are not awaited.
   */
  ready(): Promise<void>;
  /** Ends the fetches and the refreshing of the key sets that this server opened. */
  close(): void;
  /** `undefined` where the cache is off. */
  tokenCacheStatus(): TokenCacheStatus | undefined;
}

/** On workerd the next request reaches another isolate, so a nonce of this isolate is useless. */
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
  const { mode = 'allowed', algorithms = ['ES256'] } = options.dpop ?? {};
  const proofAlgorithms = readAlgorithms(algorithms, knownAlgorithms);
  const now = options.now ?? (() => Date.now() / 1000);
  const replay =
    options.dpop?.replay ??
    createMemoryReplayStore({ now, ...(hasTestIssuer(options) ? { since: 0 } : memoryDefaults) });
  const nonces = openServerNonces(options.dpop ?? {}, replay, now);
  const { onEvent, clientCertificate, externalUrl, trustProxy = 'none' } = options;
  const emit: Emit | undefined = onEvent && ((event) => void attempt(onEvent, event));
  const revocations = options.revocations && readRevocations('revocations', options.revocations);
  const decryption = options.decryption && createDecryption(options.decryption);
  const readClientAddress = createReadClientAddress(trustProxy);
  const readCertificate = clientCertificate && createReadClientCertificate(clientCertificate, trustProxy);
  const certificates = readCertificate === undefined ? 'off' : 'on';
  const cache = options.tokenCache === 'off' ? undefined : createTokenCache(options.tokenCache);
  const issuers = openIssuers(options, { certificates, emit, cache });
  // Only opaque tokens: then there is no list that the issuer could be missing from.
  const isOpaque = options.introspection !== undefined && isFixed(options.issuers) && options.issuers.length === 0;
  const readExternalUrl = createReadExternalUrl(omitUndefined({ trust: trustProxy, pinned: externalUrl }));
  const rules: JudgementRules = {
    mode,
    isWatched: emit !== undefined,
    readExternalUrl,
    issuers,
    cache,
    decryption,
    introspection: options.introspection,
    readClientAddress,
    opaqueRules: isOpaque ? readTokenRules(options) : undefined,
    withdrawal: createWithdrawalSteps(revocations, options.isRevoked),
    revocations,
    verifyAgain: createVerifyAgain(createRefetchKeys(readClientAddress, now), options.keyCache ? 'cache' : 'provider'),
    readCertificate,
    certificates,
    verifyProof: createProofVerifier({ algorithms, nonces: nonces.demanded }),
    proofAlgorithms,
    replay,
    nonces,
    now,
  };
  const judgeRequest = createJudge(rules);
  const traced: Judge = (request, policy, connection) =>
    traceAuthorize(request, () => judgeRequest(request, policy, connection));
  const audited = options.audit === undefined ? traced : auditDecisions(traced, options.audit, readClientAddress);
  const judge = (emit === undefined ? audited : watchRefusals(audited, emit)) as ResourceServer['judge']; // the schema of the policy has given these claims

  const describeRefusal = createDescribeRefusal({
    challenge: { style: options.refusalStyle?.challenge ?? 'full', mode, realm: issuers.realm, proofAlgorithms },
    errorBody:
      typeof options.errorBody === 'function' ? options.errorBody : errorBodyFormats[options.errorBody ?? 'detail'],
    statuses: readStatuses(options.refusalStyle?.insufficientScopeStatus),
    readExternalUrl,
    issueNonce: nonces.issueFor,
  });
  const server: ResourceServer = {
    judge,
    authorize: async (request, policy, connection) => {
      const judged = await judge(request, policy, connection);
      if (isAccess(judged)) return judged;
      const refusal = refusalOf(judged);
      throw refusal instanceof Refused ? refusal.toError() : refusal;
    },
    refuse: (error, request, context) => {
      const { status, headers, body } = describeRefusal(error, request, context);
      return new Response(body, { status, headers });
    },
    describeRefusal,
    ready: async () => {
      await Promise.all([issuers.ready(), decryption?.load()]);
    },
    close: issuers.close,
    tokenCacheStatus: () => cache?.status(),
  };
  recordServer(server, rules);
  return server;
}

function readStatuses(status: 401 | 403 = 403): ReadonlyMap<Reason, number> {
  const rows = Object.entries<Failure>(failures) as [Reason, Failure][]; // the keys of the table are the reasons
  return new Map(rows.filter(([, { error }]) => error === 'insufficient_scope').map(([reason]) => [reason, status]));
}
