import { attempt } from '../attempt.ts';
import type { AccessError } from '../failures.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import { errorBodyFormats } from '../refusal/error-body.ts';
import { createDescribeRefusal, type DescribeRefusal, type RefusalContext } from '../refusal/refusal.ts';
import { Refused } from '../refused.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';
import type { TokenCacheStatus } from '../token/token-cache.ts';
import { type Access, isAccess, refusalOf } from './access.ts';
import { auditDecisions, traceAuthorize, watchRefusals } from './events.ts';
import type { Subject } from './issuers/token-rules.ts';
import { createJudge, type Judge } from './judgement.ts';
import { checkOptions, type Emit, type ResourceServerOptions, requireIssuers } from './options.ts';
import { recordServer } from './own-server.ts';
import { openServerRules } from './server-rules.ts';

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
  const server = createAnyResourceServer(options);
  requireIssuers(options);
  return server;
}

/** Like {@link createResourceServer}, but `issuers` may be empty: then every token is refused as `invalid_issuer`. */
export function createAnyResourceServer<S extends Subject = 'required'>(
  options: ResourceServerOptions<S>,
): ResourceServer<ClaimsOf<S>> {
  checkOptions(options);
  const { onEvent } = options;
  const emit: Emit | undefined = onEvent && ((event) => void attempt(onEvent, event));
  const rules = openServerRules(options, emit, options.now ?? (() => Date.now() / 1000));
  const { mode, issuers, cache, decryption, readClientAddress, readExternalUrl, nonces, proofAlgorithms } = rules;
  const judgeRequest = createJudge(rules);
  const traced: Judge = (request, policy, connection) =>
    traceAuthorize(request, () => judgeRequest(request, policy, connection));
  const audited = options.audit === undefined ? traced : auditDecisions(traced, options.audit, readClientAddress);
  const judge = (emit === undefined ? audited : watchRefusals(audited, emit)) as ResourceServer['judge']; // the schema of the policy has given these claims

  const describeRefusal = createDescribeRefusal({
    challenge: { style: options.refusalStyle?.challenge ?? 'full', mode, realm: issuers.realm, proofAlgorithms },
    errorBody:
      typeof options.errorBody === 'function' ? options.errorBody : errorBodyFormats[options.errorBody ?? 'detail'],
    insufficientScopeStatus: options.refusalStyle?.insufficientScopeStatus ?? 403,
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
