import type { Policy } from '../../core/policy/policy.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';

const messages = {
  public: 'Public endpoint: open to everybody, no access token is needed.',
  private: 'Private endpoint: any valid access token opens it.',
  scoped: 'Scoped endpoint: a valid access token with the scope read:messages opens it.',
  protected: 'Protected endpoint: a valid access token is checked before the handler, which sees none of its claims.',
} as const;

const summaries = {
  public: 'Open to all clients',
  private: 'Any valid access token',
  scoped: 'A valid access token with the scope read:messages',
  profile: 'Who the access token speaks for',
  protected: 'A valid access token that the handler does not see',
} as const;

const text = { type: 'string' } as const;
const nullable = { type: ['string', 'null'] } as const;

function describe(path: string, summary: keyof typeof summaries, properties: Description['schema']): Description {
  const schema = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
  return { path, summary: summaries[summary], schema };
}

const readMessages = { scopes: ['read:messages'] } as const;

export const endpointsOfA: readonly Endpoint[] = [
  { ...describe('/api/public', 'public', { message: text }), access: 'open', body: { message: messages.public } },
  {
    ...describe('/api/private', 'private', { message: text, user_id: nullable }),
    access: {},
    answer: (claims) => ({ message: messages.private, user_id: claims.sub ?? null }),
  },
  {
    ...describe('/api/private-scoped', 'scoped', { message: text, user_id: nullable }),
    access: readMessages,
    answer: (claims) => ({ message: messages.scoped, user_id: claims.sub ?? null }),
  },
  {
    ...describe('/api/profile', 'profile', {
      user_id: nullable,
      email: nullable,
      permissions: { type: 'array', items: text },
      custom_claim: { description: 'The value of the configured claim, as the provider wrote it; null when absent.' },
    }),
    access: {},
    answer: (claims, { customClaim }) => ({
      user_id: claims.sub ?? null,
      email: typeof claims['email'] === 'string' ? claims['email'] : null,
      permissions: readStrings(claims['permissions']),
      custom_claim: Object.hasOwn(claims, customClaim) ? claims[customClaim] : null,
    }),
  },
  {
    ...describe('/api/protected', 'protected', { message: text }),
    access: {},
    answer: () => ({ message: messages.protected }),
  },
];

export const endpointsOfB: readonly Endpoint[] = [
  { ...describe('/api/public', 'public', { Message: text }), access: 'open', body: { Message: messages.public } },
  {
    ...describe('/api/private', 'private', { Message: text }),
    access: {},
    answer: () => ({ Message: messages.private }),
  },
  {
    ...describe('/api/private-scoped', 'scoped', { Message: text }),
    access: readMessages,
    answer: () => ({ Message: messages.scoped }),
  },
];

function readStrings(claim: unknown): readonly string[] {
  return Array.isArray(claim) ? claim.filter((item) => typeof item === 'string') : [];
}

interface Description {
  readonly path: string;
  readonly summary: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

interface OpenEndpoint extends Description {
  readonly access: 'open';
  readonly body: object;
}

/** An endpoint with a policy. Its body may depend on the claims. */
export interface ProtectedEndpoint extends Description {
  readonly access: Policy;
  readonly answer: (claims: RegisteredClaims, settings: { readonly customClaim: string }) => object;
}

/** One route: the app, the OpenAPI document and the page are built from it. */
export type Endpoint = OpenEndpoint | ProtectedEndpoint;
