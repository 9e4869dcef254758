export type { JwkSet } from '../jose/jwk.ts';
export type { ProofAlg, TokenAlg } from '../jose/jws.ts';
export type { CertificateClient, CertificateHeaders } from './certificate-client.ts';
export type { DpopCall, DpopClient, DpopClientOptions, DpopHeaders, ProofRequest } from './dpop-client.ts';
export { type ExpectRefusedOptions, expectRefused } from './expect-refused.ts';
export type { IntrospectionAccount } from './issuer-server.ts';
export type { PreviousKeys } from './key-ring.ts';
export { type ProofFlaw, proofFlaws } from './proof-flaws.ts';
export {
  type BearerHeaders,
  createTestIssuer,
  type ListeningIssuer,
  type TestIssuer,
  type TestIssuerOptions,
  type TokenIssuer,
} from './test-issuer.ts';
export { type TokenFlaw, tokenFlaws } from './token-flaws.ts';
