import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { Access } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { type Demand, demand } from './checkpoint.ts';

/** How what is behind `authorize` finds the access. `D` are the claims of its server. */
export interface AccessReaders<Q, D> {
  /** As `accessOf`, with the claims that this server gives: `sub` is a text if it must be there. */
  accessOf<C = D>(request: Q, policy?: Policy<C>): Access<HandedClaims<C, D>>;
  /** The same; `undefined` if nobody has let the request in. */
  findAccess<C = D>(request: Q, policy?: Policy<C>): Access<HandedClaims<C, D>> | undefined;
}

/** What the middleware form is in most frameworks: it takes a policy, and gives what the framework mounts. */
interface Authorize<M, Q, D> extends AccessReaders<Q, D> {
  (policy?: Policy<unknown>): M;
  optional(policy?: Policy<unknown>): M;
}

/** Makes a function that demands credentials, and beside it `optional`, which does not. */
export function createForms<F extends object>(
  create: (credentials: Demand<never>['credentials']) => F,
): F & { readonly optional: F } {
  return Object.assign(create('required'), { optional: create('optional') });
}

/** Makes the middleware form of an adapter. `mount` makes what its framework mounts. */
export function createMiddlewareForms<M, Q, D>(
  readers: AccessReaders<Q, RegisteredClaims>,
  mount: (asked: Demand<unknown>) => M,
): Authorize<M, Q, D> {
  const forms = createForms((credentials) => (policy?: Policy<unknown>) => mount(demand(policy, credentials)));
  // Only the server knows whether `sub` must be there; the readers of its own middleware may say so.
  return Object.assign(forms, readers as AccessReaders<Q, D>);
}
