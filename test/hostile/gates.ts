import { clientCertificate } from './client-certificate.ts';
import { denyList } from './deny-list.ts';
import type { GateCase } from './gate-case.ts';
import { introspection } from './introspection.ts';
import { issuers } from './issuers.ts';
import { keyDocuments } from './key-documents.ts';
import { profile } from './profile.ts';
import { replayedProofs } from './replayed-proofs.ts';
import { stepUp } from './step-up.ts';
import { verifiedTokens } from './verified-tokens.ts';

/** Every case for options of the library, by its part of the catalogue. */
export const gates: Readonly<Record<string, readonly GateCase[]>> = {
  'documents of the provider': keyDocuments,
  'verified tokens': verifiedTokens,
  'DPoP replay and nonces': replayedProofs,
  introspection,
  'client certificates': clientCertificate,
  'profile of RFC 9068': profile,
  'deny list': denyList,
  'step-up': stepUp,
  'several issuers': issuers,
};
