import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';

interface Admission {
  readonly server: ResourceServer<RegisteredClaims>;
  readonly policy: Policy<unknown>;
  readonly access: Access<unknown>;
}

const admissions = new WeakMap<object, Admission>();

export function recordAdmission(request: object, admission: Admission): void {
  admissions.set(request, admission);
}

export function findAdmission(request: object): Admission | undefined {
  return admissions.get(request);
}

/** Returns the access of an admitted request; with a policy, only if that policy admitted it. */
export function findAccessOf<C = RegisteredClaims>(
  request: object,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> | undefined {
  const found = admissions.get(request);
  if (found === undefined || (policy !== undefined && found.policy !== policy)) return undefined;
  return found.access as Access<HandedClaims<C, RegisteredClaims>>; // the schema of this policy returned these claims
}

export function requireAccessOf<C = RegisteredClaims>(
  request: object,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> {
  const access = findAccessOf(request, policy);
  if (access !== undefined) return access;
  throw new TypeError(
    policy === undefined || findAdmission(request) === undefined
      ? 'accessOf: this request was not authorized; put authorize(policy) before the handler, or use findAccess'
      : 'accessOf: another policy authorized this request; pass the policy of the last authorize(…)',
  );
}
