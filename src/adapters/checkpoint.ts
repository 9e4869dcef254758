import { attempt } from '../attempt.ts';
import { AccessError, type Failure, failures } from '../failures.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import { checkMembers } from '../policy/members.ts';
import type { Policy } from '../policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../refusal/error-body.ts';
import type { Refusal } from '../refusal/refusal.ts';
import { requireOwnServer } from '../resource-server/own-server.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { admitOrRefuse } from './admission.ts';
import { findAdmission, rememberAdmission } from './admitted.ts';

/** What every adapter may be told. `Q` is the request as the framework hands it over. */
export interface CheckpointOptions<Q> {
  /** Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. */
  readonly onRefused?: ((error: unknown, request: Q) => unknown) | undefined;
  /** Realm of the challenge for a request, such as the name of its tenant. Default: the audiences of the server. */
  readonly realm?: ((request: Q) => string | undefined) | undefined;
  /** Makes the body of a refusal for a request, such as one with its id. Default: the form that the server has. */
  readonly errorBody?: ((report: ErrorReport, request: Q) => ErrorBody) | undefined;
}

/** What a route asks for. */
export interface Demand<C> {
  readonly policy: Policy<C>;
  /** `optional`: a request with neither `Authorization` nor `DPoP` passes without access; every other one is judged. */
  readonly credentials: 'required' | 'optional';
}

/** One request at a route, and how its framework goes on or answers. */
export interface Visit<Q, T, C> {
  /** What handlers ask `accessOf` with. */
  readonly key: object;
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
  /** What `onRefused` is told. */
  readonly told: Q;
  /** Without access only if credentials are optional and there are none. */
  readonly admit: (access: Access<C> | undefined) => T | Promise<T>;
  readonly refuse: (refusal: Refusal) => T;
}

/** Where the requests of one resource server are let in or refused, in every framework alike. */
export interface Checkpoint<Q> {
  pass<T, C>(demand: Demand<C>, visit: Visit<Q, T, C>): T | Promise<T>;
  /** The answer to what a handler has thrown; `undefined` if that is no refusal. */
  describeThrown(
    error: unknown,
    visit: Pick<Visit<Q, never, never>, 'key' | 'request' | 'connection' | 'told'>,
  ): Refusal | undefined;
}

/** Creates the one mechanism behind both forms of an adapter. Throws `TypeError` for what cannot work. */
export function createCheckpoint<Q>(
  caller: string,
  server: ResourceServer<RegisteredClaims>,
  options: CheckpointOptions<Q>,
): Checkpoint<Q> {
  requireOwnServer(caller, server);
  const { onRefused, errorBody, realm } = options;
  const shape = (refusal: Refusal, request: Q): Refusal => {
    const own = errorBody === undefined ? undefined : attempt(() => errorBody(reportOf(refusal), request));
    if (own === undefined) return refusal;
    return { ...refusal, headers: { ...refusal.headers, 'content-type': own.contentType }, body: own.body };
  };
  return {
    pass(demand, visit) {
      const { policy } = demand;
      const { key, request, connection, admit, refuse } = visit;
      if (demand.credentials === 'optional' && !hasCredentials(request)) return admit(undefined);
      return admitOrRefuse(server, {
        request: findAdmission(key)?.server === server ? new AdmittedRequest(request) : request,
        policy,
        connection,
        realm: realm === undefined ? undefined : () => attempt(realm, visit.told),
        admit: (access) => {
          rememberAdmission(key, { server, policy, access });
          return admit(access);
        },
        refuse: (refusal, error) => {
          attempt(onRefused, error, visit.told);
          return refuse(shape(refusal, visit.told));
        },
      });
    },
    describeThrown(error, { key, request, connection, told }) {
      if (!(error instanceof AccessError)) return undefined;
      attempt(onRefused, error, told);
      const context = { policy: findAdmission(key)?.policy, connection, realm: attempt(realm, told) };
      return shape(server.describeRefusal(error, request, context), told);
    },
  };
}

/** Throws `TypeError` for options that an adapter does not know: one that is misspelled would do nothing, without a word. */
export function checkAdapterOptions(caller: string, options: object, known: readonly string[]): void {
  checkMembers(caller, options, known);
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && typeof value !== 'function') throw new TypeError(`${caller}: ${name} is a function`);
  }
}

/** Any valid token will do. */
const anyToken: Policy = {};

/** What a route demands. Throws `TypeError` for a policy that cannot work. */
export function demand<C>(policy: Policy<C> | undefined, credentials: Demand<C>['credentials']): Demand<C> {
  // Without a policy the claims are those of the token.
  const asked = policy ?? (anyToken as Policy<C>);
  if (isRequest(asked)) throw new TypeError(uncalled);
  checkPolicy(asked);
  return { policy: asked, credentials };
}

/** `authorize` itself was mounted, so its framework hands it a request or a context in place of a policy. */
function isRequest(policy: unknown): boolean {
  return Object(policy) === policy && ['rawHeaders', 'raw', 'req', 'headers'].some((name) => name in Object(policy));
}
const uncalled = "authorize: call it to make the middleware: authorize(), or authorize({ scopes: ['read:messages'] })";

/** Any of the two headers makes a request one that is judged: a broken credential is never taken for none. */
function hasCredentials({ headers }: ResourceRequest): boolean {
  return headers.get('authorization') !== null || headers.get('dpop') !== null;
}

function reportOf({ reason, status }: Refusal): ErrorReport {
  const failure: Failure = failures[reason];
  return { status, error: failure.error ?? 'unauthorized', description: failure.description };
}

/** A request that the same server has let in before, by another policy: its proof was used up then. */
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
