import { createProofVerifier } from '../dpop/proof.ts';
import { createMemoryReplayStore, type ReplayStore } from '../dpop/replay.ts';
import { createReadClientCertificate } from '../http/client-certificate.ts';
import { createReadClientAddress, createReadExternalUrl } from '../http/external-url.ts';
import { createDecryption } from '../introspection/decryption.ts';
import { proofAlgorithms as knownAlgorithms, readAlgorithms } from '../jose/jws.ts';
import { omitUndefined } from '../option-members.ts';
import { pickByPlatform } from '../platform.ts';
import { readRevocations } from '../revocation/revocations.ts';
import type { TokenRules } from '../token/access-token.ts';
import type { CertificateBinding } from '../token/claims.ts';
import { createTokenCache } from '../token/token-cache.ts';
import { createWithdrawalSteps } from '../token/withdrawal.ts';
import { openIssuers } from './issuers/issuer-list.ts';
import { readTokenRules } from './issuers/token-rules.ts';
import { hasTestIssuer, isFixed } from './issuers/trusted-issuer.ts';
import { createRefetchKeys, createVerifyAgain } from './key-refetch.ts';
import type { AnyServerOptions, Emit } from './options.ts';
import { openServerNonces } from './server-nonces.ts';

/** Configuration of one resource server, as authorization reads it. */
export type JudgementRules = ReturnType<typeof openServerRules>;

/** On workerd the next request reaches another isolate, so a nonce of this isolate is useless. */
const memoryDefaults = pickByPlatform<{ readonly since?: number }>({ workerd: { since: 0 }, others: {} });

/** Opens the parts of a resource server by its options. `emit`: present if the application listens to events. `now` returns seconds since the epoch. */
export function openServerRules(options: AnyServerOptions, emit: Emit | undefined, now: () => number) {
  const { mode = 'allowed', algorithms = ['ES256'] } = options.dpop ?? {};
  const proofAlgorithms = readAlgorithms(algorithms, knownAlgorithms);
  const replay: ReplayStore | 'off' =
    options.dpop?.replay ??
    createMemoryReplayStore({ now, ...(hasTestIssuer(options) ? { since: 0 } : memoryDefaults) });
  const nonces = openServerNonces(options.dpop ?? {}, replay, now);
  const { clientCertificate, externalUrl, trustProxy = 'none' } = options;
  const revocations = options.revocations && readRevocations('revocations', options.revocations);
  const readClientAddress = createReadClientAddress(trustProxy);
  const readCertificate = clientCertificate && createReadClientCertificate(clientCertificate, trustProxy);
  const certificates: CertificateBinding = readCertificate === undefined ? 'off' : 'on';
  const cache = options.tokenCache === 'off' ? undefined : createTokenCache(options.tokenCache);
  // Only opaque tokens: then there is no list that the issuer could be missing from.
  const isOpaque = options.introspection !== undefined && isFixed(options.issuers) && options.issuers.length === 0;
  /** Rules for the tokens of the introspected issuer, if it is not among the trusted ones. */
  const opaqueRules: TokenRules | undefined = isOpaque ? readTokenRules(options) : undefined;
  return {
    ...{ mode, cache, opaqueRules, revocations, readCertificate, certificates, replay, nonces, now, readClientAddress },
    isWatched: emit !== undefined,
    readExternalUrl: createReadExternalUrl(omitUndefined({ trust: trustProxy, pinned: externalUrl })),
    issuers: openIssuers(options, { certificates, emit, cache }),
    decryption: options.decryption && createDecryption(options.decryption),
    introspection: options.introspection,
    /** The ways in which a token can turn out to be withdrawn, in their order. */
    withdrawal: createWithdrawalSteps(revocations, options.isRevoked),
    verifyAgain: createVerifyAgain(createRefetchKeys(readClientAddress, now), options.keyCache ? 'cache' : 'provider'),
    verifyProof: createProofVerifier({ algorithms, nonces: nonces.demanded }),
    proofAlgorithms,
  };
}
