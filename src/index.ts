export type { AssertionClaims } from './assertion/assertion-claims.ts';
export {
  type AssertedRequest,
  type AssertionVerifier,
  type AssertionVerifierOptions,
  createAssertionVerifier,
} from './assertion/assertion-verifier.ts';
export { type Audit, type AuditOptions, createAudit } from './audit/audit.ts';
export type { AuditDecision } from './audit/decision.ts';
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
export type { Trust } from './http/external-url.ts';
export type { Connection, ResourceRequest } from './http/request.ts';
export type { JwkSet } from './jose/jwk.ts';
export type { ProofAlg, TokenAlg } from './jose/jws.ts';
export type { PrivateKey } from './jose/sign.ts';
export { createKeySet, type KeySet, type KeySetStatus, type ManagedKeySet } from './keys/key-set.ts';
export type { FetchedKeys, KeySetEvent, KeySetOptions } from './keys/key-set-options.ts';
export { createStaticKeySet } from './keys/static-key-set.ts';
export type { Fetch, FetchInit, FetchResponse } from './outbound/http-client.ts';
export { ProviderError, type ProviderFailure } from './outbound/provider-error.ts';
export { allOf, anyOf } from './policy/checked-policy.ts';
export type { ClaimCondition, ClaimValue } from './policy/claim-conditions.ts';
export type {
  ActorPolicy,
  AllowedActor,
  ClaimsPolicy,
  CombinedPolicy,
  HandedClaims,
  Implications,
  PlainCombinedPolicy,
  PlainPolicy,
  Policy,
  Requirements,
} from './policy/policy.ts';
export type { ErrorBody, ErrorBodyFormat, ErrorReport } from './refusal/error-body.ts';
export type { DescribeRefusal, Refusal, RefusalContext } from './refusal/refusal.ts';
export { type EndAtExpiryOptions, endAtExpiry } from './resource-server/access.ts';
export { explainRefusals } from './resource-server/events.ts';
export type { IssuerFinder, IssuerRequest, ResolveIssuers } from './resource-server/issuer-finder.ts';
export type {
  AnyServerOptions,
  DpopOptions,
  IssuerWithRecipients,
  RefusalStyle,
  ResourceServerEvent,
  ResourceServerOptions,
} from './resource-server/options.ts';
export {
  type Access,
  type ClaimsOf,
  createResourceServer,
  type ResourceServer,
} from './resource-server/resource-server.ts';
export type { Recipients, Subject, TokenRuleOptions } from './resource-server/token-rules.ts';
export type { IssuerList, IssuerRuleOptions, TrustedIssuer } from './resource-server/trusted-issuer.ts';
export { createMemoryRevocationStore } from './revocation/memory-store.ts';
export type { RevocationFollower, RevocationRecord, RevocationStore } from './revocation/record.ts';
export { RevocationsFull } from './revocation/record.ts';
export {
  createRedisRevocationStore,
  type RedisRevocationOptions,
  type RedisRevocationStore,
} from './revocation/redis-store.ts';
export {
  type Cutoff,
  createRevocations,
  type Revocations,
  type RevocationsOptions,
  type RevocationsStatus,
} from './revocation/revocations.ts';
export type { Claims, RegisteredClaims, TokenProfile } from './token/claims.ts';
export type { Actor, ClaimPath } from './token/grants.ts';
export type { TokenCacheOptions, TokenCacheStatus } from './token/token-cache.ts';
export type { ClientAssertionAlg, ClientCredentials, ClientKey } from './token-status/client-authentication.ts';
export type { DecryptionOptions } from './token-status/decryption.ts';
export type { DenyCheck } from './token-status/deny-list.ts';
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
