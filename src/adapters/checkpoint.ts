import { attempt } from '../core/attempt.ts';
import { AccessError, type Failure, failures } from '../core/failures.ts';
import type { Connection, ResourceRequest } from '../core/http/request.ts';
import { checkMembers } from '../core/option-members.ts';
import type { Policy } from '../core/policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../core/refusal/error-body.ts';
import type { Refusal } from '../core/refusal/refusal.ts';
import { requireOwnServer } from '../core/resource-server/own-server.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import { admissions, decide, toAccessError } from './admission.ts';
import type { RoutePolicy } from './forms.ts';

/** Parameters of `explain` for a refused request. */
export interface RefusedRequest {
  /** The refused request. */
  readonly request: ResourceRequest;
  /** Policy of the route; for a refusal that a handler has thrown, the policy that admitted the request. */
  readonly policy: Policy<unknown> | undefined;
  /** Its transport. */
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

/** A request of a framework, as the checkpoint reads it. */
export interface Visitor<Q> {
  /** Object that identifies the request, for its readers. */
  readonly key: object;
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
  /** Request of the framework, for the functions of {@link AdapterOptions}. */
  readonly original: Q;
}

/** Result of a checkpoint. An admitted request has no access only if credentials are optional and absent. */
type Passage<C> =
  | { readonly access: Access<C> | undefined; readonly refusal?: undefined }
  | { readonly access?: undefined; readonly refusal: Refusal };

/** Admission or refusal of the requests to one resource server; the same for every framework. */
export type Checkpoint<Q> = ReturnType<typeof createCheckpoint<Q>>;

/** Creates the mechanism behind both forms of an adapter. Throws `TypeError` for invalid options; `more` are additional ones. */
export function createCheckpoint<Q>(
  caller: string,
  server: ResourceServer<RegisteredClaims>,
  { options, more = [] }: { readonly options: AdapterOptions<Q>; readonly more?: readonly string[] | undefined },
) {
  // A misspelled option would silently have no effect.
  checkMembers(caller, options, [...more, 'onRefused', 'realm', 'errorBody']);
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && typeof value !== 'function') throw new TypeError(`${caller}: ${name} is a function`);
  }
  const { isWatched } = requireOwnServer(caller, server);
  const { onRefused, errorBody, realm } = options;

  const refuse = (error: unknown, policy: Policy<unknown> | undefined, visitor: Visitor<Q>): Refusal => {
    const { request, connection, original } = visitor;
    const refusal = server.describeRefusal(error, request, { policy, connection, realm: attempt(realm, original) });
    attempt(onRefused, toAccessError(error), original, { request, policy, connection });
    const own = errorBody && attempt(errorBody, reportOf(refusal), original);
    if (own === undefined) return refusal;
    return { ...refusal, headers: { ...refusal.headers, 'content-type': own.contentType }, body: own.body };
  };

  return {
    async pass<C>({ policy, credentials }: RoutePolicy<C>, visitor: Visitor<Q>): Promise<Passage<C>> {
      const { key, request, connection } = visitor;
      if (credentials === 'optional' && !hasCredentials(request)) return { access: undefined };
      const isAdmitted = admissions.get(key)?.server === server;
      const { access, error } = await decide(server, isAdmitted ? witness(request) : request, { policy, connection });
      if (access !== undefined) {
        admissions.set(key, { server, policy, access });
        return { access };
      }
      const refusal = refuse(error, policy, visitor);
      if (!isWatched) hintOnce(refusal);
      return { refusal };
    },
    /** Returns the refusal for an `AccessError` that a handler has thrown; `undefined` for every other error. */
    describeThrown: (error: unknown, visitor: Visitor<Q>): Refusal | undefined =>
      error instanceof AccessError ? refuse(error, admissions.get(visitor.key)?.policy, visitor) : undefined,
  };
}

let isHinted = false;

/** Prints once, in development only, how to see why requests are refused. */
function hintOnce({ reason }: Refusal): void {
  if (isHinted || globalThis.process?.env['NODE_ENV'] !== 'development') return;
  isHinted = true;
  const option = 'createResourceServer({ …, onEvent: explainRefusals() }), both from portcullis';
  // biome-ignore lint/suspicious/noConsole: the console is where a developer looks.
  console.info(`portcullis: a request was refused: ${reason}. For one line of explanation each: ${option}`);
}

/** Reports whether either header is present: a broken credential is never treated as an absent one. */
function hasCredentials({ headers }: ResourceRequest): boolean {
  return headers.get('authorization') !== null || headers.get('dpop') !== null;
}

function reportOf({ reason, status }: Refusal): ErrorReport {
  const failure: Failure = failures[reason];
  return { status, error: failure.error ?? 'unauthorized', description: failure.description };
}

/** Marks a request that the same server has admitted by another policy, and whose proof it recorded then. */
function witness(request: ResourceRequest): ResourceRequest {
  const { method, headers, target } = request;
  return {
    method,
    headers,
    target,
    proofWitnessed: true,
    get url() {
      return request.url;
    },
  };
}
