export type { JwkSet } from '../core/jose/jwk.ts';
export type { ProofAlg, TokenAlg } from '../core/jose/jws.ts';
export type { CertificateClient, CertificateHeaders } from './certificate.ts';
export type { DpopCall, DpopClient, DpopClientOptions, DpopHeaders, ProofRequest } from './dpop-client.ts';
export { type ExpectRefusedOptions, expectRefused } from './expect-refused.ts';
export { type ProofFlaw, proofFlaws, type TokenFlaw, tokenFlaws } from './flaws.ts';
export type { IntrospectionAccount } from './issuer-server.ts';
export type { PreviousKeys } from './key-ring.ts';
export {
  type BearerHeaders,
  createTestIssuer,
  type ListeningIssuer,
  type TestIssuer,
  type TestIssuerOptions,
  type TokenIssuer,
} from './test-issuer.ts';
