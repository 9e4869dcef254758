import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';

/** Who let a request in, and by which policy. */
export interface Admission {
  readonly server: ResourceServer<RegisteredClaims>;
  readonly policy: Policy<unknown>;
  readonly access: Access<unknown>;
}

/** Admissions by the request that they are for; the latest of each. */
const admissions = new WeakMap<object, Admission>();

/** Remembers that a request was let in. */
export function rememberAdmission(request: object, admission: Admission): void {
  admissions.set(request, admission);
}

/** The latest admission of a request. */
export function findAdmission(request: object): Admission | undefined {
  return admissions.get(request);
}

/** The access of a request, if it was let in; by this policy, if one is named. */
export function findAccessOf<C = RegisteredClaims>(
  request: object,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> | undefined {
  const found = admissions.get(request);
  if (found === undefined || (policy !== undefined && found.policy !== policy)) return undefined;
  return found.access as Access<HandedClaims<C, RegisteredClaims>>; // the schema of this policy has given these claims
}

/** The same; throws `TypeError` if the request was not let in. */
export function requireAccessOf<C = RegisteredClaims>(
  request: object,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> {
  const access = findAccessOf(request, policy);
  if (access !== undefined) return access;
  throw new TypeError(
    policy === undefined || findAdmission(request) === undefined
      ? 'accessOf: nobody has let this request in; put authorize(policy) before the handler, or use findAccess'
      : 'accessOf: another policy has let this request in; name the policy of the last authorize(…)',
  );
}
