import type { Policy } from '../../core/policy/policy.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';

const messages = {
  public: 'Public endpoint: open to everybody, no access token is needed.',
  private: 'Private endpoint: any valid access token opens it.',
  scoped: 'Scoped endpoint: a valid access token with the scope read:messages opens it.',
  protected: 'Protected endpoint: a valid access token is checked before the handler, which sees none of its claims.',
} as const;

const summaries = {
  public: 'Open to everybody',
  private: 'Any valid access token',
  scoped: 'A valid access token with the scope read:messages',
  profile: 'Who the access token speaks for',
  protected: 'A valid access token that the handler does not see',
} as const;

const text = { type: 'string' } as const;
const nullable = { type: ['string', 'null'] } as const;

function objectSchema(properties: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

const readMessages = { scopes: ['read:messages'] } as const;

export const endpointsOfA: readonly Endpoint[] = [
  {
    path: '/api/public',
    summary: summaries.public,
    access: 'open',
    schema: objectSchema({ message: text }),
    body: { message: messages.public },
  },
  {
    path: '/api/private',
    summary: summaries.private,
    access: {},
    schema: objectSchema({ message: text, user_id: nullable }),
    answer: (claims) => ({ message: messages.private, user_id: claims.sub ?? null }),
  },
  {
    path: '/api/private-scoped',
    summary: summaries.scoped,
    access: readMessages,
    schema: objectSchema({ message: text, user_id: nullable }),
    answer: (claims) => ({ message: messages.scoped, user_id: claims.sub ?? null }),
  },
  {
    path: '/api/profile',
    summary: summaries.profile,
    access: {},
    schema: objectSchema({
      user_id: nullable,
      email: nullable,
      permissions: { type: 'array', items: text },
      custom_claim: { description: 'The value of the configured claim, as the provider wrote it; null when absent.' },
    }),
    answer: (claims, { customClaim }) => ({
      user_id: claims.sub ?? null,
      email: typeof claims['email'] === 'string' ? claims['email'] : null,
      permissions: readStrings(claims['permissions']),
      custom_claim: Object.hasOwn(claims, customClaim) ? claims[customClaim] : null,
    }),
  },
  {
    path: '/api/protected',
    summary: summaries.protected,
    access: {},
    schema: objectSchema({ message: text }),
    answer: () => ({ message: messages.protected }),
  },
];

export const endpointsOfB: readonly Endpoint[] = [
  {
    path: '/api/public',
    summary: summaries.public,
    access: 'open',
    schema: objectSchema({ Message: text }),
    body: { Message: messages.public },
  },
  {
    path: '/api/private',
    summary: summaries.private,
    access: {},
    schema: objectSchema({ Message: text }),
    answer: () => ({ Message: messages.private }),
  },
  {
    path: '/api/private-scoped',
    summary: summaries.scoped,
    access: readMessages,
    schema: objectSchema({ Message: text }),
    answer: () => ({ Message: messages.scoped }),
  },
];

function readStrings(claim: unknown): readonly string[] {
  return Array.isArray(claim) ? claim.filter((item) => typeof item === 'string') : [];
}

export interface EndpointSettings {
  readonly customClaim: string;
}

interface Description {
  readonly path: string;
  readonly summary: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface OpenEndpoint extends Description {
  readonly access: 'open';
  readonly body: object;
}

/** An endpoint with a policy. Its body may depend on the claims. */
export interface ProtectedEndpoint extends Description {
  readonly access: Policy;
  readonly answer: (claims: RegisteredClaims, settings: EndpointSettings) => object;
}

/** One route: the app, the OpenAPI document and the page are built from it. */
export type Endpoint = OpenEndpoint | ProtectedEndpoint;
