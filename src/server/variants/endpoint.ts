import type { Policy } from '../../policy/policy.ts';
import type { RegisteredClaims } from '../../token/claims.ts';

/** What an endpoint may know of the settings. */
export interface EndpointSettings {
  /** Name of the claim that the profile shows. */
  readonly customClaim: string;
}

interface Description {
  /** Exact path. */
  readonly path: string;
  /** One line for the documentation. */
  readonly summary: string;
  /** JSON Schema of the body. */
  readonly schema: Readonly<Record<string, unknown>>;
}

/** An endpoint for everybody: its body is the same for all. */
export interface OpenEndpoint extends Description {
  readonly access: 'open';
  readonly body: object;
}

/** An endpoint behind a policy; only here are there claims to answer from. */
export interface ProtectedEndpoint extends Description {
  readonly access: Policy;
  readonly answer: (claims: RegisteredClaims, settings: EndpointSettings) => object;
}

/** One record of the service's routes: the app, the OpenAPI document and the page are made from it. */
export type Endpoint = OpenEndpoint | ProtectedEndpoint;
