import type { errorBodyFormats } from '../../core/refusal/error-body.ts';
import { type Endpoint, endpointsOfA, endpointsOfB } from './endpoints.ts';

export interface Variant {
  /** Names of the two required settings, in the environment and in the settings file. */
  readonly names: { readonly domain: string; readonly audience: string };
  readonly defaults: {
    readonly dpopEnabled: boolean;
    readonly errorBody: keyof typeof errorBodyFormats;
    /** Seconds. */
    readonly clockTolerance: { readonly exp: number; readonly nbf: number };
  };
  /** `background`: starts without keys and refreshes them; `at-start`: loads once, or does not start. */
  readonly keyLoading: 'background' | 'at-start';
  readonly discoveryFallback: 'well-known' | 'none';
  readonly subject: 'required' | 'optional';
  readonly challenge: 'full' | 'bare';
  readonly insufficientScopeStatus: 401 | 403;
  readonly endpoints: readonly Endpoint[];
}

export const variants = {
  a: {
    names: { domain: 'IDP_DOMAIN', audience: 'IDP_AUDIENCE' },
    defaults: { dpopEnabled: true, errorBody: 'detail', clockTolerance: { exp: 5, nbf: 5 } },
    keyLoading: 'background',
    discoveryFallback: 'well-known',
    subject: 'required',
    challenge: 'full',
    insufficientScopeStatus: 403,
    endpoints: endpointsOfA,
  },
  b: {
    names: { domain: 'IdpDomain', audience: 'IdpApiIdentifier' },
    defaults: { dpopEnabled: false, errorBody: 'message', clockTolerance: { exp: 0, nbf: 300 } },
    keyLoading: 'at-start',
    discoveryFallback: 'none',
    subject: 'optional',
    challenge: 'bare',
    insufficientScopeStatus: 401,
    endpoints: endpointsOfB,
  },
} as const satisfies Readonly<Record<string, Variant>>;

export type VariantName = keyof typeof variants;
