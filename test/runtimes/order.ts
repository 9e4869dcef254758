import type { JwkSet } from '../../src/core/jose/jwk.ts';
import { createStaticKeySet } from '../../src/core/keys/static-key-set.ts';
import type { FrameworkName } from '../adapters/frameworks.ts';
import type { SceneIssuer } from '../adapters/scene.ts';

/** Settings of a program on another runtime, as JSON. */
export interface Order {
  readonly name: FrameworkName;
  readonly issuer: string;
  readonly audience: string;
  /** Absent where the keys are to be fetched. */
  readonly jwks?: JwkSet;
  readonly ca?: string;
}

/** Returns the issuer of the scene, with the received keys. */
export function readIssuer({ issuer, audience, jwks, ca }: Order): SceneIssuer {
  return {
    issuer,
    audience,
    ...(jwks !== undefined && { keys: createStaticKeySet(jwks) }),
    ...(ca !== undefined && { ca }),
  };
}
