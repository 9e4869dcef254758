import { attempt } from '../attempt.ts';
import { AccessError, type Failure, failures } from '../failures.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { checkMembers } from '../option-members.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../refusal/error-body.ts';
import type { Refusal } from '../refusal/refusal.ts';
import { requireOwnServer } from '../resource-server/own-server.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { admitOrRefuse, toAccessError } from './admission.ts';
import { findAdmission, recordAdmission } from './admitted.ts';

/** Parameters of `explain` for a refused request. */
export interface RefusedRequest {
  readonly request: ResourceRequest;
  /** Policy of the route; for a refusal that a handler has thrown, the policy that admitted the request. */
  readonly policy: Policy<unknown> | undefined;
  readonly connection: Connection | undefined;
}

/** Options shared by all adapters. `Q` is the request of the framework. */
export interface AdapterOptions<Q> {
  /**
   * Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. A defect is the `cause` of
   * the reason `unexpected`. `refused` has the parameters
   * of `explain(server, refused.request, refused.policy, refused.connection)`.
   */
  readonly onRefused?: ((error: AccessError, request: Q, refused: RefusedRequest) => unknown) | undefined;
  /** Realm of the challenge, such as the name of the request's tenant. Default: the audiences of the server. */
  readonly realm?: ((request: Q) => string | undefined) | undefined;
  /** Body of a refusal, for example with the request's id. If it throws, and by default: the form of the server. */
  readonly errorBody?: ((report: ErrorReport, request: Q) => ErrorBody) | undefined;
}

/** Options of adapters whose requests do not contain their connection. `Rest` is what the runtime passes after the request. */
export interface WebAdapterOptions<Q, Rest extends readonly unknown[] = []> extends AdapterOptions<Q> {
  /** Transport of a request; needed for proxies trusted by address. Default: unknown, with the scheme of the URL. */
  readonly connection?: ((request: Q, ...rest: Rest) => Connection | undefined) | undefined;
}

export interface RoutePolicy<C> {
  readonly policy: Policy<C>;
  /** `optional`: a request with neither `Authorization` nor `DPoP` is admitted without access; every other one is validated. */
  readonly credentials: 'required' | 'optional';
}

export interface Visit<Q, T, C> {
  readonly key: object;
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
  /** Request of the framework, for the functions of {@link AdapterOptions}. */
  readonly original: Q;
  /** Called without access only if credentials are optional and absent. */
  readonly admit: (access: Access<C> | undefined) => T | Promise<T>;
  readonly refuse: (refusal: Refusal) => T;
}

export type Visitor<Q> = Pick<Visit<Q, never, never>, 'key' | 'request' | 'connection' | 'original'>;

/** Admission or refusal of the requests to one resource server; the same for every framework. */
export interface Checkpoint<Q> {
  pass<T, C>(route: RoutePolicy<C>, visit: Visit<Q, T, C>): Promise<T>;
  /** Returns the refusal for an `AccessError` that a handler has thrown; `undefined` for every other error. */
  describeThrown(error: unknown, visitor: Visitor<Q>): Refusal | undefined;
}

/** Creates the mechanism behind both forms of an adapter. Throws `TypeError` for invalid options; `more` are additional ones. */
export function createCheckpoint<Q>(
  caller: string,
  server: ResourceServer<RegisteredClaims>,
  options: AdapterOptions<Q>,
  more: readonly string[] = [],
): Checkpoint<Q> {
  // A misspelled option would silently have no effect.
  checkMembers(caller, options, [...more, 'onRefused', 'realm', 'errorBody']);
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && typeof value !== 'function') throw new TypeError(`${caller}: ${name} is a function`);
  }
  const { isWatched } = requireOwnServer(caller, server);
  const { onRefused, errorBody, realm } = options;
  const shape = (refusal: Refusal, request: Q): Refusal => {
    const own = errorBody === undefined ? undefined : attempt(() => errorBody(reportOf(refusal), request));
    if (own === undefined) return refusal;
    return { ...refusal, headers: { ...refusal.headers, 'content-type': own.contentType }, body: own.body };
  };
  return {
    async pass({ policy, credentials }, { key, request, connection, original, admit, refuse }) {
      if (credentials === 'optional' && !hasCredentials(request)) return admit(undefined);
      return admitOrRefuse(server, {
        request: findAdmission(key)?.server === server ? new AdmittedRequest(request) : request,
        policy,
        connection,
        realm: realm === undefined ? undefined : () => attempt(realm, original),
        admit: (access) => {
          recordAdmission(key, { server, policy, access });
          return admit(access);
        },
        refuse: (refusal, error) => {
          if (!isWatched) hintOnce(refusal);
          attempt(onRefused, toAccessError(error), original, { request, policy, connection });
          return refuse(shape(refusal, original));
        },
      });
    },
    describeThrown(error, { key, request, connection, original }) {
      if (!(error instanceof AccessError)) return undefined;
      const policy = findAdmission(key)?.policy;
      attempt(onRefused, error, original, { request, policy, connection });
      const context = { policy, connection, realm: attempt(realm, original) };
      return shape(server.describeRefusal(error, request, context), original);
    },
  };
}

let isHinted = false;

/** Prints once, in development only, how to see why requests are refused. */
function hintOnce({ reason }: Refusal): void {
  if (isHinted || globalThis.process?.env['NODE_ENV'] !== 'development') return;
  isHinted = true;
  const option = 'createResourceServer({ …, onEvent: explainRefusals() })';
  // biome-ignore lint/suspicious/noConsole: the console is where a developer looks.
  console.info(`portcullis: a request was refused: ${reason}. For one line of explanation each: ${option}`);
}

const anyToken: Policy = {};

export function readRoutePolicy<C>(
  policy: Policy<C> | undefined,
  credentials: RoutePolicy<C>['credentials'],
): RoutePolicy<C> {
  // Without a policy the claims are the token's.
  const read = policy ?? (anyToken as Policy<C>);
  if (isRequest(read)) throw new TypeError(uncalled);
  checkPolicy(read);
  return { policy: read, credentials };
}

/** Reads the policy of a wrapped handler. Throws `TypeError` for an invalid policy, or without a handler. */
export function readHandlerPolicy<C>(
  policy: Policy<C>,
  credentials: RoutePolicy<C>['credentials'],
  handler: unknown,
): RoutePolicy<C> {
  if (isRequest(policy)) throw new TypeError(unwrapped);
  checkPolicy(policy);
  if (typeof handler !== 'function') throw new TypeError(`protect: ${withHandler}`);
  return { policy, credentials };
}

/** Reports whether a framework called the form itself, with a request or a context instead of a policy. */
function isRequest(policy: unknown): boolean {
  return Object(policy) === policy && ['rawHeaders', 'raw', 'req', 'headers'].some((name) => name in Object(policy));
}
const uncalled = "authorize: call it to make the middleware: authorize(), or authorize({ scopes: ['read:messages'] })";
const withHandler = 'write protect(policy, handler), with the function that responds to admitted requests';
const unwrapped = `protect: it was mounted as a handler; ${withHandler}`;

/** Reports whether either header is present: a broken credential is never treated as an absent one. */
function hasCredentials({ headers }: ResourceRequest): boolean {
  return headers.get('authorization') !== null || headers.get('dpop') !== null;
}

function reportOf({ reason, status }: Refusal): ErrorReport {
  const failure: Failure = failures[reason];
  return { status, error: failure.error ?? 'unauthorized', description: failure.description };
}

/** A request that the same server has admitted by another policy, which recorded its proof. */
class AdmittedRequest implements ResourceRequest {
  readonly proofWitnessed = true;
  readonly method: string;
  readonly headers: ResourceRequest['headers'];
  readonly target: string | undefined;
  readonly #request: ResourceRequest;

  constructor(request: ResourceRequest) {
    this.method = request.method;
    this.headers = request.headers;
    this.target = request.target;
    this.#request = request;
  }

  get url(): string {
    return this.#request.url;
  }
}
