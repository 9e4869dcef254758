export { createNonces, type NonceOptions, type Nonces } from './dpop/nonce.ts';
export {
  createMemoryReplayStore,
  type MemoryReplayOptions,
  type MemoryReplayStore,
  type ReplayStore,
} from './dpop/replay.ts';
export { createRedisReplayStore, type RedisReplayOptions, type RedisReplayStore } from './dpop/replay-redis.ts';
export {
  AccessError,
  type AccessErrorOptions,
  type Failure,
  type FailureContext,
  failures,
  type Reason,
  type StepUp,
} from './failures.ts';
export type { ClientCertificateSource } from './http/client-certificate.ts';
export type { DpopMode, Scheme } from './http/credentials.ts';
export type { Connection, ResourceRequest } from './http/request.ts';
export type { Trust } from './http/trust.ts';
export type { JwkSet } from './jose/jwk.ts';
export {
  createKeySet,
  type FetchedKeys,
  type KeySet,
  type KeySetEvent,
  type KeySetOptions,
  type KeySetStatus,
  type ManagedKeySet,
} from './keys/key-set.ts';
export { createStaticKeySet } from './keys/static-key-set.ts';
export type { Fetch, FetchInit, FetchResponse } from './outbound/http-client.ts';
export { KeyFetchError, type KeyFetchFailure, ProviderError, type ProviderFailure } from './outbound/provider-error.ts';
export { allOf, anyOf } from './policy/combination.ts';
export type { ClaimsPolicy, CombinedPolicy, PlainPolicy, Policy, Requirements } from './policy/policy.ts';
export type { ErrorBody, ErrorBodyFormat, ErrorReport } from './refusal/error-body.ts';
export type { DescribeRefusal, Refusal, RefusalContext } from './refusal/refusal.ts';
export type { IssuerList, IssuerRequest, ResolveIssuers } from './resource-server/issuer-list.ts';
export type { DpopOptions, ResourceServerEvent, ResourceServerOptions } from './resource-server/options.ts';
export { type Access, createResourceServer, type ResourceServer } from './resource-server/resource-server.ts';
export type { IssuerRuleOptions, TokenRuleOptions, TrustedIssuer } from './resource-server/trusted-issuer.ts';
export type { Claims } from './token/claims.ts';
export type { TokenProfile } from './token/profile.ts';
export type { TokenCacheOptions, TokenCacheStatus } from './token/token-cache.ts';
export {
  createDenyList,
  type DenyEntry,
  type DenyKind,
  type DenyList,
  type DenyListOptions,
  type DenyValues,
} from './token-status/deny-list.ts';
export {
  createIntrospection,
  type Introspection,
  type IntrospectionOptions,
  type IntrospectionStatus,
} from './token-status/introspection.ts';
