import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Nonces } from './dpop/nonce.ts';
import { createProofVerifier } from './dpop/proof.ts';
import { createMemoryReplayStore, type ReplayStore } from './dpop/replay.ts';
import { AccessError, type Reason } from './failures.ts';
import { type Credentials, type DpopMode, readCredentials, type Scheme } from './http/credentials.ts';
import { type ErrorBodyFormat, errorBodyFormats } from './http/error-body.ts';
import { createReadExternalUrl, type ExternalUrl } from './http/external-url.ts';
import { createDescribeRefusal, type DescribeRefusal, type RefusalContext } from './http/refusal.ts';
import type { Connection, ResourceRequest } from './http/request.ts';
import type { Trust } from './http/trust.ts';
import type { KeySet } from './keys/key-set.ts';
import { enforcePolicy, type Policy } from './policy/policy.ts';
import { type AccessTokenRules, type VerifiedToken, verifyAccessToken } from './token/access-token.ts';
import { algorithms } from './token/algorithms.ts';
import type { Claims } from './token/claims.ts';
import { createTokenCache, type TokenCacheOptions, type TokenCacheStatus } from './token/token-cache.ts';
import { traceAuthorize } from './tracing.ts';

/** What a judged request may do: handed to the handler. */
export interface Access {
  readonly claims: Claims;
  /** The elements of `scope`. */
  readonly scopes: ReadonlySet<string>;
  readonly scheme: Scheme;
  /** A fresh nonce that the answer should carry in `DPoP-Nonce` (RFC 9449 §8.2). */
  readonly dpopNonce?: string;
}

/** An issuer that is trusted, and its keys. */
export interface TrustedIssuer {
  /** Compared byte for byte with `iss`. */
  readonly issuer: string;
  readonly keys: KeySet;
}

/** How DPoP proofs are judged (RFC 9449). */
export interface DpopOptions {
  /** Default `allowed`: Bearer and DPoP. */
  readonly mode?: DpopMode;
  /** `alg` values accepted in proofs. Default `ES256`. */
  readonly algorithms?: readonly string[];
  /** Where used proofs are remembered. Default: the memory of this process. */
  readonly replay?: ReplayStore | 'off';
  /** Demands nonces of this server in proofs. Default: none. */
  readonly nonces?: Nonces;
}

/** Options of {@link createResourceServer}. */
export interface ResourceServerOptions {
  /** With none, every token is refused as `invalid_issuer`. */
  readonly issuers: readonly TrustedIssuer[];
  /** One of these must be in `aud`, byte for byte. */
  readonly audience: string | readonly string[];
  /** `alg` values accepted in access tokens. Default `RS256`. */
  readonly algorithms?: readonly string[];
  /** Seconds by which clocks may differ: `exp`, and `nbf` with `iat`. Default 5 each. */
  readonly clockTolerance?: { readonly exp: number; readonly nbf: number };
  /** Whether `sub` must be there (RFC 9068 §2.2). Default `required`. */
  readonly subject?: 'required' | 'optional';
  readonly dpop?: DpopOptions;
  /** How many verified tokens are kept. Default: 10 000 in at most 64 MiB. */
  readonly tokenCache?: TokenCacheOptions | 'off';
  /** Peers whose X-Forwarded-* headers are believed. Default `none`. */
  readonly trustProxy?: Trust;
  /** Form of error bodies. Default `detail`. */
  readonly errorBody?: keyof typeof errorBodyFormats | ErrorBodyFormat;
  /** `full` challenges with parameters, or `bare`: Bearer without any. Default `full`. */
  readonly challenge?: 'full' | 'bare';
  /** Status of a refusal for want of scope. Default 403 (RFC 6750 §3.1). */
  readonly insufficientScopeStatus?: 401 | 403;
  /** Seconds since the epoch. Default: the clock of this machine. */
  readonly now?: () => number;
}

/** The gate: judges requests, and answers those it refuses. */
export interface ResourceServer {
  /**
   * Judges a request. Returns at once where nothing has to be waited for; a promise where keys must be fetched or
   * the replay store is remote. Throws (or rejects with) `AccessError`.
   */
  authorize(request: ResourceRequest, policy?: Policy, connection?: Connection): Access | Promise<Access>;
  /** Answers a refused request. */
  refuse(error: unknown, request: ResourceRequest, context?: RefusalContext): Response;
  /** The same answer for frameworks that do not send a web-standard `Response`. */
  readonly describeRefusal: DescribeRefusal;
  /** `undefined` where the cache is off. */
  tokenCacheStatus(): TokenCacheStatus | undefined;
}

/** What one judgement is made of. */
interface Case {
  readonly method: string;
  readonly url: ExternalUrl;
  readonly credentials: Credentials;
  readonly policy: Policy;
}

/** Headers of access tokens that are kept: an issuer writes one for each of its keys. */
const keptHeaders = 1000;

/** Creates a resource server. Throws `TypeError` for options that cannot work. */
export function createResourceServer(options: ResourceServerOptions): ResourceServer {
  const { mode = 'allowed', algorithms: proofAlgorithms = ['ES256'], nonces } = options.dpop ?? {};
  const now = options.now ?? (() => Date.now() / 1000);
  const replay = options.dpop?.replay ?? createMemoryReplayStore({ now });
  const rules = readRules(options);
  const cache = options.tokenCache === 'off' ? undefined : createTokenCache(rules, options.tokenCache);
  const readExternalUrl = createReadExternalUrl({ trust: options.trustProxy ?? 'none' });
  const errorBody =
    typeof options.errorBody === 'function' ? options.errorBody : errorBodyFormats[options.errorBody ?? 'detail'];
  const verifyProof = createProofVerifier({ algorithms: proofAlgorithms, nonces });

  const verifyToken = (token: string, digest: string, seconds: number): VerifiedToken => {
    const known = cache?.find(digest, seconds);
    if (known !== undefined) return known;
    const verified = verifyAccessToken(token, rules, seconds);
    cache?.remember(digest, verified, token.length);
    return verified;
  };

  const judge = (item: Case): Access | Promise<Access> => {
    const { method, url, credentials, policy } = item;
    const seconds = now();
    const digest = hash('sha256', credentials.token, 'base64url');
    const { claims, scopes, jkt } = verifyToken(credentials.token, digest, seconds);
    if (credentials.proof === undefined) {
      if (jkt !== undefined) throw new AccessError('bound_token_as_bearer');
      enforcePolicy(policy, scopes);
      return { claims, scopes, scheme: 'Bearer' };
    }
    if (jkt === undefined) throw new AccessError('unbound_token_as_dpop');
    const proof = verifyProof({
      proof: credentials.proof,
      method,
      url,
      ath: digest,
      jkt,
      now: seconds,
    });
    enforcePolicy(policy, scopes);
    const access: Access = {
      claims,
      scopes,
      scheme: 'DPoP',
      ...(proof.nonce !== undefined && { dpopNonce: proof.nonce }),
    };
    if (replay === 'off') return access;
    // The last check of all: only a proof that would have been accepted is remembered.
    const first = replay.witness(jkt, proof.jti, proof.expires);
    return typeof first === 'boolean' ? admit(first, access) : first.then((answer) => admit(answer, access));
  };

  const authorize = (request: ResourceRequest, policy: Policy, connection?: Connection): Access | Promise<Access> => {
    // Host and forwarded headers are held to their grammar always, whatever is made of them (RFC 9112 §3.2).
    const url = readExternalUrl(request, connection);
    const credentials = readCredentials(request.headers, mode);
    const item: Case = { method: request.method, url, credentials, policy };
    try {
      return judge(item);
    } catch (error) {
      const fetched = refetchKeys(error, rules);
      if (fetched === undefined) throw error;
      return fetched.then(() => judge(item));
    }
  };

  const describeRefusal = createDescribeRefusal({
    challenge: {
      style: options.challenge ?? 'full',
      mode,
      realm: [...rules.audiences].join(' '),
      proofAlgorithms,
    },
    errorBody,
    statuses: new Map<Reason, number>([['insufficient_scope', options.insufficientScopeStatus ?? 403]]),
    readExternalUrl,
    issueNonce: () => nonces?.issue(now()),
  });
  return {
    authorize: (request, policy = {}, connection) => traceAuthorize(() => authorize(request, policy, connection)),
    refuse: (error, request, context) => {
      const { status, headers, body } = describeRefusal(error, request, context);
      return new Response(body, { status, headers });
    },
    describeRefusal,
    tokenCacheStatus: () => cache?.status(),
  };
}

function admit(first: boolean, access: Access): Access {
  if (!first) throw new AccessError('proof_replayed');
  return access;
}

/** Fetches the keys whose want caused the refusal; `undefined` where that cannot help or is not allowed now. */
function refetchKeys(error: unknown, { issuers }: AccessTokenRules): Promise<void> | undefined {
  if (!(error instanceof AccessError)) return undefined;
  if (error.reason !== 'unknown_kid' && error.reason !== 'keys_unavailable') return undefined;
  const issuer = error.context?.['issuer'];
  return typeof issuer === 'string' ? issuers.get(issuer)?.refetch() : undefined;
}

function readRules(options: ResourceServerOptions): AccessTokenRules {
  const audiences = new Set(typeof options.audience === 'string' ? [options.audience] : options.audience);
  if (audiences.size === 0 || audiences.has('')) throw new TypeError('audience: name at least one, none of them empty');
  const allowed = new Set(options.algorithms ?? ['RS256']);
  for (const alg of allowed) {
    if (!algorithms.has(alg)) throw new TypeError(`algorithms: write any of ${[...algorithms.keys()].join(', ')}`);
  }
  if (allowed.size === 0) throw new TypeError('algorithms: name at least one');
  const { exp, nbf } = options.clockTolerance ?? { exp: 5, nbf: 5 };
  if (!(exp >= 0 && nbf >= 0)) throw new TypeError('clockTolerance: write seconds, 0 or more');
  return {
    issuers: new Map(options.issuers.map(({ issuer, keys }) => [issuer, keys])),
    audiences,
    algorithms: allowed,
    headers: new LRUCache({ max: keptHeaders }),
    expTolerance: exp,
    nbfTolerance: nbf,
    subject: options.subject ?? 'required',
  };
}
