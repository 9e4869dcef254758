import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { Claims, RegisteredClaims } from '../token/claims.ts';

/** Who let a request in, and by which policy. */
export interface Admission {
  readonly server: ResourceServer<RegisteredClaims>;
  readonly policy: Policy<unknown>;
  readonly access: Access<unknown>;
}

/** Admissions by the request that they are for; the latest of each. */
const admissions = new WeakMap<object, Admission>();

/** How what is behind `authorize` finds the access. `D` are the claims of its server. */
export interface AccessReaders<Q, D> {
  /** As `accessOf`, with the claims that this server gives: `sub` may be absent if it is optional there. */
  accessOf<C = D>(request: Q, policy?: Policy<C>): Access<C>;
  /** The same; `undefined` if nobody has let the request in. */
  findAccess<C = D>(request: Q, policy?: Policy<C>): Access<C> | undefined;
}

/** Remembers that a request was let in. */
export function rememberAdmission(request: object, admission: Admission): void {
  admissions.set(request, admission);
}

/** The latest admission of a request. */
export function findAdmission(request: object): Admission | undefined {
  return admissions.get(request);
}

/** The access of a request, if it was let in; by this policy, if one is named. */
export function findAccessOf<C = Claims>(request: object, policy?: Policy<C>): Access<C> | undefined {
  const found = admissions.get(request);
  if (found === undefined || (policy !== undefined && found.policy !== policy)) return undefined;
  return found.access as Access<C>; // the schema of this policy has given these claims
}

/** The same; throws `TypeError` if the request was not let in. */
export function requireAccessOf<C = Claims>(request: object, policy?: Policy<C>): Access<C> {
  const access = findAccessOf(request, policy);
  if (access !== undefined) return access;
  throw new TypeError(
    policy === undefined || findAdmission(request) === undefined
      ? 'accessOf: nobody has let this request in; put authorize(policy) before the handler, or use findAccess'
      : 'accessOf: another policy has let this request in; name the policy of the last authorize(…)',
  );
}
