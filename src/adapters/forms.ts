import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { Access } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { findAccessOf, requireAccessOf } from './admitted.ts';
import { type RoutePolicy, readRoutePolicy } from './checkpoint.ts';

/** Readers of the access that a request was granted. `D` are the claims that its server provides. */
export interface AccessReaders<Q, D = RegisteredClaims> {
  /** Returns the access of a request; the claims have the types of the policy's schema. Throws `TypeError` without access. */
  accessOf<C = D>(request: Q, policy?: Policy<C>): Access<HandedClaims<C, D>>;
  /** Like `accessOf`, but returns `undefined` without access. */
  findAccess<C = D>(request: Q, policy?: Policy<C>): Access<HandedClaims<C, D>> | undefined;
}

/**
 * Creates middleware from a policy; without one, any valid token is admitted. Throws `TypeError` for an invalid policy. `M` is
 * what the framework mounts.
 */
export interface AuthorizeForms<M, Q, D> extends AccessReaders<Q, D> {
  (policy?: Policy<unknown>): M;
  /** For routes that are also open: without `Authorization` and `DPoP` there is no access; every other request is validated. */
  optional(policy?: Policy<unknown>): M;
}

/** Creates a function for required credentials; its member `optional` is for optional ones. */
export function createForms<F extends object>(
  create: (credentials: RoutePolicy<never>['credentials']) => F,
): F & { readonly optional: F } {
  return Object.assign(create('required'), { optional: create('optional') });
}

/** Creates the middleware form of an adapter. `mount` creates what its framework mounts, `keyOf` returns the key of a visit. */
export function createMiddlewareForms<M, Q extends object, D>(
  mount: (route: RoutePolicy<unknown>) => M,
  keyOf: (request: Q) => object = (request) => request,
): AuthorizeForms<M, Q, D> {
  const forms = createForms((credentials) => (policy?: Policy<unknown>) => mount(readRoutePolicy(policy, credentials)));
  const readers: AccessReaders<Q> = {
    accessOf: (request, policy) => requireAccessOf(keyOf(request), policy),
    findAccess: (request, policy) => findAccessOf(keyOf(request), policy),
  };
  // Only the server knows whether `sub` is required; the readers of its own middleware can state it.
  return Object.assign(forms, readers as unknown as AccessReaders<Q, D>);
}
