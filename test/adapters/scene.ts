import type { StandardSchemaV1 } from '@standard-schema/spec';
import { createNonces } from '../../src/core/dpop/nonce.ts';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { AccessError } from '../../src/core/failures.ts';
import { createIntrospection } from '../../src/core/introspection/introspection.ts';
import type { KeySet } from '../../src/core/keys/key-set.ts';
import type { Fetch } from '../../src/core/outbound/http-client.ts';
import type { Policy } from '../../src/core/policy/policy.ts';
import type { AnyServerOptions } from '../../src/core/resource-server/options.ts';
import {
  type Access,
  createResourceServer,
  type ResourceServer,
} from '../../src/core/resource-server/resource-server.ts';
import { createRevocations } from '../../src/core/revocation/revocations.ts';
import type { Claims, RegisteredClaims } from '../../src/core/token/claims.ts';

/** Seconds: the time of issuer, clients and servers, so that nonces are the same in each. */
export const now = () => 1_800_000_000;
export const nonces = createNonces({ secret: 'a secret of thirty-two bytes, or more' });
export const policy = { scopes: ['read:messages'] } as const satisfies Policy;

/** Whose tokens the servers take. */
export interface SceneIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** Default: those that it publishes. */
  readonly keys?: KeySet;
  /** PEM of its certificate, where the keys are fetched. */
  readonly ca?: string;
  /** What they are fetched with; default: the built-in client. */
  readonly fetch?: Fetch;
}

const proxies = ['127.0.0.1'];

function failWith(error: Error): never {
  throw error;
}

/** The keys of the issuer after a fetch that ends later; before it there are none. */
function createLateKeys({ keys }: SceneIssuer): KeySet {
  let arrived = false;
  return {
    generation: 0,
    find: (kid, alg) => (arrived ? keys?.find(kid, alg) : undefined),
    has: (kid) => arrived && keys?.has(kid) === true,
    usable: () => arrived,
    async refetch() {
      await new Promise((resolve) => setTimeout(resolve, 5));
      arrived = true;
    },
  };
}

function createAsking({ issuer }: SceneIssuer, fetch: () => Promise<Response>) {
  const endpoint = 'https://idp.example/introspect';
  return createIntrospection({ endpoint, issuer, clientId: 'api', clientSecret: 'secret', fetch });
}

export const noKeys: KeySet = {
  generation: 0,
  find: () => undefined,
  has: () => false,
  usable: () => false,
  refetch: () => undefined,
};

type MakeOptions = (of: SceneIssuer) => Partial<Omit<AnyServerOptions, 'issuer'>>;

/** Options of a resource server for each state that a request can meet. */
const serverOptions = {
  usual: () => ({}),
  slow: (of) => ({ issuers: [{ issuer: of.issuer, keys: createLateKeys(of) }] }),
  dpopOff: () => ({ dpop: { mode: 'off' } }),
  dpopRequired: () => ({ dpop: { mode: 'required' } }),
  withNonces: () => ({ dpop: { nonces } }),
  justStarted: () => ({
    dpop: { nonces, nonceDemand: 'after-start', replay: { witness: () => new AccessError('proof_before_start') } },
  }),
  behindProxy: () => ({ trustProxy: proxies }),
  withoutKeys: ({ issuer }) => ({ issuers: [{ issuer, keys: noKeys }] }),
  withoutReplay: () => ({
    dpop: { replay: { witness: () => Promise.reject(new AccessError('replay_store_unavailable')) } },
  }),
  ownBodies: () => ({
    errorBody: ({ description }) => ({ contentType: 'text/x-own', body: `Zurückgewiesen: ${description}\n` }),
  }),
  withFullReplay: () => ({ dpop: { replay: { witness: () => failWith(new AccessError('replay_store_full')) } } }),
  ofProfile: () => ({ profile: 'rfc9068' }),
  withCertificates: () => ({ clientCertificate: 'header', trustProxy: proxies }),
  withCheck: () => ({ isRevoked: ({ claims }) => claims.sub === 'mallory' }),
  withFailingCheck: () => ({ isRevoked: () => Promise.reject(new Error('of the check')) }),
  withFullAudit: () => ({ audit: { isAvailable: () => false } }),
  withRevocations: () => ({ revocations: createRevocations({ maxTokenLifetime: 60, now }) }),
  ofClients: () => ({ clientIds: ['web'] }),
  asking: (of) => ({ introspection: createAsking(of, async () => Response.json({ active: false })) }),
  askingInVain: (of) => ({ introspection: createAsking(of, () => Promise.reject(new TypeError('no network'))) }),
  defective: () => ({ issuers: { find: () => failWith(new Error('of the directory')) } }),
} as const satisfies Readonly<Record<string, MakeOptions>>;

export type ServerName = keyof typeof serverOptions;
export type Servers = Readonly<Record<ServerName, ResourceServer>>;

/** One resource server for each state that a request can meet; made anew for each framework. */
export function createServers(of: SceneIssuer): Servers {
  const { issuer, audience, keys, ca, fetch } = of;
  const usual = {
    issuers: [keys === undefined ? issuer : { issuer, keys }],
    audience,
    now,
    ...(ca !== undefined && { ca }),
    ...(fetch !== undefined && { fetch }),
  };
  const made = Object.entries<MakeOptions>(serverOptions).map(([name, make]) => {
    const { dpop, ...options } = make(of);
    // It began long ago, and its nonces are those of every other server here.
    const replay = { ...createMemoryReplayStore({ capacity: 1000, now, since: 0 }), generation: 0 };
    return [name, createResourceServer({ ...usual, ...options, dpop: { replay, ...dpop } })] as const;
  });
  return Object.fromEntries(made) as Servers; // of the names above
}

const withEmail: StandardSchemaV1<unknown, Claims> = {
  '~standard': {
    version: 1,
    vendor: 'of the tests',
    validate: (value) => {
      const claims = value as Claims; // the claims of a verified token
      return typeof claims['email'] === 'string'
        ? { value: claims }
        : { issues: [{ message: 'email is missing', path: ['email'] }] };
    },
  },
};

/** Policies of routes that ask for more than a scope, by the name of the route. */
const policies = {
  anyScope: { anyScope: ['read:messages', 'admin'] },
  permissions: { permissions: ['messages:read'] },
  actor: { actor: [{ sub: 'agent-1' }] },
  claims: { claims: withEmail },
  acr: { acr: ['urn:example:gold', 'urn:example:silver'] },
  maxAge: { maxAge: 300 },
} as const satisfies Readonly<Record<string, Policy>>;

/** What a route does with a request that was let in. */
export type Behaviour = 'answers' | 'throws' | 'rejects';

/** One protected route, as every framework mounts it. */
export interface SceneRoute {
  readonly path: string;
  readonly server: ServerName;
  readonly policy: Policy;
  readonly behaviour: Behaviour;
}

export const prefix = '/api/v1';
const names = Object.keys(serverOptions) as ServerName[]; // a literal: no keys but those of its type

/** Every framework has these at its root and below {@link prefix}. */
export const routes: readonly SceneRoute[] = [
  ...names.map((server) => ({ path: `/${server}`, server, policy, behaviour: 'answers' }) as const),
  ...Object.entries(policies).map(
    ([name, each]) => ({ path: `/${name}`, server: 'usual', policy: each, behaviour: 'answers' }) as const,
  ),
  { path: '/throws', server: 'usual', policy, behaviour: 'throws' },
  { path: '/rejects', server: 'usual', policy, behaviour: 'rejects' },
  { path: '/slow-throws', server: 'slow', policy, behaviour: 'throws' },
];

/** What a handler throws; frameworks are set up to answer it with 500 and this text. */
export class HandlerError extends Error {}
export const handlerMessage = 'of the handler';

/** What every handler answers. */
export function describeAccess({ claims, scheme }: Access<RegisteredClaims>) {
  return { sub: claims.sub, scheme };
}

/** What a route does: the answer, or the error as its behaviour has it. */
export function behave<T>(behaviour: Behaviour, answer: () => T): T | Promise<T> {
  if (behaviour === 'answers') return answer();
  const error = new HandlerError(handlerMessage);
  if (behaviour === 'rejects') return Promise.reject(error);
  throw error;
}
