import { endpointsOfA, endpointsOfB } from './endpoints.ts';

export const variants = {
  a: {
    /** Names of the two required settings, in the environment and in the settings file. */
    names: { domain: 'IDP_DOMAIN', audience: 'IDP_AUDIENCE' },
    defaults: { dpopEnabled: true, errorBody: 'detail', clockTolerance: { exp: 5, nbf: 5 } },
    /** `background`: starts without keys and refreshes them; `at-start`: loads once, or does not start. */
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
} as const;

export type VariantName = keyof typeof variants;
export type Variant = (typeof variants)[VariantName];
