export type { AssertionClaims } from './core/assertion/assertion-claims.ts';
export {
  type AssertedRequest,
  type AssertionVerifier,
  type AssertionVerifierOptions,
  createAssertionVerifier,
} from './core/assertion/assertion-verifier.ts';
export { createNonces, type NonceOptions, type Nonces } from './core/dpop/nonce.ts';
export {
  createMemoryReplayStore,
  type MemoryReplayOptions,
  type MemoryReplayStore,
  type ReplayStore,
} from './core/dpop/replay.ts';
export { createRedisReplayStore, type RedisReplayOptions, type RedisReplayStore } from './core/dpop/replay-redis.ts';
export type { ExchangedToken } from './core/exchange/exchange-cache.ts';
export type { ExchangeTarget, TokenExchangeOptions } from './core/exchange/exchange-request.ts';
export { createTokenExchange, type TokenExchange } from './core/exchange/token-exchange.ts';
export {
  AccessError,
  type AccessErrorOptions,
  type Failure,
  type FailureContext,
  failures,
  type Reason,
  type StepUp,
} from './core/failures.ts';
export type { ClientCertificateSource } from './core/http/client-certificate.ts';
export type { DpopMode, Scheme } from './core/http/credentials.ts';
export type { Trust } from './core/http/external-url.ts';
export type { Connection, ResourceRequest } from './core/http/request.ts';
export type { ClientAssertionAlg, ClientCredentials, ClientKey } from './core/introspection/client-authentication.ts';
export type { DecryptionOptions } from './core/introspection/decryption.ts';
export {
  createIntrospection,
  type Introspection,
  type IntrospectionOptions,
  type IntrospectionStatus,
} from './core/introspection/introspection.ts';
export type { JwkSet } from './core/jose/jwk.ts';
export type { ProofAlg, TokenAlg } from './core/jose/jws.ts';
export type { PrivateKey } from './core/jose/sign.ts';
export type { CachedKeys, KeyCache } from './core/keys/key-cache.ts';
export { createKeySet, type KeySet, type KeySetStatus, type ManagedKeySet } from './core/keys/key-set.ts';
export type { KeySetEvent, KeySetOptions } from './core/keys/key-set-options.ts';
export type { FetchedKeys } from './core/keys/loaded-keys.ts';
export { createStaticKeySet } from './core/keys/static-key-set.ts';
export type { Fetch, FetchInit, FetchResponse } from './core/outbound/http-client.ts';
export { ProviderError, type ProviderFailure } from './core/outbound/provider-error.ts';
export { allOf, anyOf } from './core/policy/checked-policy.ts';
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
} from './core/policy/policy.ts';
export type { ErrorBody, ErrorBodyFormat, ErrorReport } from './core/refusal/error-body.ts';
export type { DescribeRefusal, Refusal, RefusalContext } from './core/refusal/refusal.ts';
export { type EndAtExpiryOptions, endAtExpiry } from './core/resource-server/access.ts';
export type { Audit, AuditDecision } from './core/resource-server/audit.ts';
export { explainRefusals } from './core/resource-server/events.ts';
export type { IssuerFinder, IssuerRequest } from './core/resource-server/issuers/issuer-finder.ts';
export type { Recipients, Subject, TokenRuleOptions } from './core/resource-server/issuers/token-rules.ts';
export type { IssuerList, IssuerRuleOptions, TrustedIssuer } from './core/resource-server/issuers/trusted-issuer.ts';
export type {
  AnyServerOptions,
  DpopOptions,
  IssuerWithRecipients,
  RefusalStyle,
  ResourceServerEvent,
  ResourceServerOptions,
} from './core/resource-server/options.ts';
export {
  type Access,
  type ClaimsOf,
  createResourceServer,
  type ResourceServer,
} from './core/resource-server/resource-server.ts';
export { createMemoryRevocationStore } from './core/revocation/memory-store.ts';
export type { RevocationFollower, RevocationRecord, RevocationStore } from './core/revocation/record.ts';
export { RevocationsFull } from './core/revocation/record.ts';
export {
  createRedisRevocationStore,
  type RedisRevocationOptions,
  type RedisRevocationStore,
} from './core/revocation/redis-store.ts';
export {
  type Cutoff,
  createRevocations,
  type Revocations,
  type RevocationsOptions,
  type RevocationsStatus,
} from './core/revocation/revocations.ts';
export type { Claims, RegisteredClaims, TokenProfile } from './core/token/claims.ts';
export type { Actor, ClaimPath } from './core/token/grants.ts';
export type { TokenCacheOptions, TokenCacheStatus } from './core/token/token-cache.ts';
export type { IsRevoked, RevocableToken } from './core/token/withdrawal.ts';
export { type AuditOptions, createAudit } from './server/observation/audit/audit.ts';
