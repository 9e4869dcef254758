import { checkPolicy } from '../core/policy/checked-policy.ts';
import type { Policy, Unmade } from '../core/policy/policy.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import { type AccessReaders, accessOf, findAccess } from './admission.ts';

/** The policy of a route. Credentials are `optional` if a request with neither `Authorization` nor `DPoP` is admitted without access. */
export interface RoutePolicy<C> {
  readonly policy: Policy<C>;
  readonly credentials: 'required' | 'optional';
}

/** A function for required credentials, with `optional` for routes that are also open. */
export type Forms<F, O = F> = F & {
  /** For routes that are also open: without `Authorization` and `DPoP` there is no access; every other request is validated. */
  readonly optional: O;
};

/** For the compiler: its error for `app.use(authorize)` has the name of the type, and so the fix. */
export type Fix = 'call it: authorize()';

/** Creates middleware from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. */
type CreateMiddleware<M, F> = (policy?: Policy<unknown>, uncalled?: Unmade<F>) => M;

/** The middleware of an adapter, and readers of the access that it grants. `M` is what the framework mounts. */
export type AuthorizeForms<M, Q, D, F = Fix> = Forms<CreateMiddleware<M, F>> & AccessReaders<Q, D>;

/** Creates a function for required credentials, with a member `optional`. */
export function createForms<F extends object>(create: (credentials: RoutePolicy<never>['credentials']) => F): Forms<F> {
  return Object.assign(create('required'), { optional: create('optional') });
}

/** Creates a wrapper, whose types are `P`. `wrap` gets a checked policy and the handler, and creates what the runtime calls. */
export function createWrapperForms<P, H>(wrap: (route: RoutePolicy<unknown>, handler: H) => unknown): P {
  const forms = createForms((credentials) => (policy: Policy<unknown>, handler: H, third?: unknown) => {
    if (isRequest(policy)) throw new TypeError(unwrapped);
    checkPolicy(policy);
    if (typeof handler !== 'function') throw new TypeError(`protect: ${withHandler}`);
    refuseSecond('protect', third);
    return wrap({ policy, credentials }, handler);
  });
  // `P` states the types of the route and its handler; none is read here.
  return forms as unknown as P;
}

/** Creates middleware. `mount` creates what its framework mounts, `keyOf` returns the object that identifies a request. */
export function createMiddlewareForms<M, Q extends object, D>(
  server: ResourceServer<RegisteredClaims>,
  mount: (route: RoutePolicy<unknown>) => M,
  keyOf: (request: Q) => object = (request) => request,
): AuthorizeForms<M, Q, D> {
  const forms = createForms((credentials) => (...args: readonly [policy?: Policy<unknown>, second?: unknown]) => {
    const [policy, second] = args;
    if (args.length > 0 && policy === undefined) throw new TypeError(undefinedPolicy);
    const route = readRoutePolicy(policy, credentials);
    refuseSecond('authorize', second);
    return mount(route);
  });
  const readers: AccessReaders<Q> = {
    accessOf: (request, policy) => accessOf(keyOf(request), { server, policy }),
    findAccess: (request, policy) => findAccess(keyOf(request), { server, policy }),
  };
  // Only the server knows whether `sub` is required; the readers of its own middleware can state it.
  return Object.assign(forms, readers as unknown as AccessReaders<Q, D>);
}

const anyToken: Policy = {};

/** Throws `TypeError` for a second policy, which would require nothing. `map` passes an index. */
export function refuseSecond(caller: string, second: unknown): void {
  if (Object(second) !== second) return;
  throw new TypeError(`${caller}: write one policy; combine several with allOf(…) or anyOf(…)`);
}

/** Reads the policy of middleware. Throws `TypeError` for an invalid policy. */
export function readRoutePolicy<C>(
  policy: Policy<C> | undefined,
  credentials: RoutePolicy<C>['credentials'],
): RoutePolicy<C> {
  // Without a policy the claims are the token's.
  const read = policy === undefined ? (anyToken as Policy<C>) : policy;
  if (isRequest(read)) throw new TypeError(uncalled);
  checkPolicy(read);
  return { policy: read, credentials };
}

/** Reports whether a framework called the function itself, with a request or a context instead of a policy. */
function isRequest(policy: unknown): boolean {
  return Object(policy) === policy && ['rawHeaders', 'raw', 'req', 'headers'].some((name) => name in Object(policy));
}
const uncalled = "authorize: call it to make the middleware: authorize(), or authorize({ scopes: ['read:messages'] })";
/** Such as a misspelled member of an object of policies. */
const undefinedPolicy = 'policy: it is undefined; for any valid token, write authorize()';
const withHandler = 'write protect(policy, handler), with the function that responds to admitted requests';
const unwrapped = `protect: it was mounted as a handler; ${withHandler}`;
