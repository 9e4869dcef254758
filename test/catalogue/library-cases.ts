import { clientCertificate } from './client-certificate.ts';
import { introspection } from './introspection.ts';
import { issuers } from './issuers.ts';
import { keyDocuments } from './key-documents.ts';
import type { LibraryCase } from './library-case.ts';
import { profile } from './profile.ts';
import { replayedProofs } from './replayed-proofs.ts';
import { stepUp } from './step-up.ts';
import { verifiedTokens } from './verified-tokens.ts';

/** Every case for options of the library, by its part of the catalogue. */
export const libraryCases: Readonly<Record<string, readonly LibraryCase[]>> = {
  'documents of the provider': keyDocuments,
  'verified tokens': verifiedTokens,
  'DPoP replay and nonces': replayedProofs,
  introspection,
  'client certificates': clientCertificate,
  'profile of RFC 9068': profile,
  'step-up': stepUp,
  'several issuers': issuers,
};
