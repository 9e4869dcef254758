import { AccessError } from '../core/failures.ts';
import type { Connection, ResourceRequest } from '../core/http/request.ts';
import type { HandedClaims, Policy } from '../core/policy/policy.ts';
import { isAccess, refusalOf } from '../core/resource-server/access.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';

/** The access of a request, or the error that refuses it: a refusal or a defect. */
type Decision<C> =
  | { readonly access: Access<C>; readonly error?: undefined }
  | { readonly access?: undefined; readonly error: unknown };

/** Authorizes a request. Only access that this copy of the package has granted admits it. */
export async function decide<C>(
  server: ResourceServer<RegisteredClaims>,
  request: ResourceRequest,
  { policy, connection }: { readonly policy: Policy<C>; readonly connection: Connection | undefined },
): Promise<Decision<C>> {
  try {
    const judged: unknown = await server.judge(request, policy, connection);
    // The schema of the policy returned these claims; without a schema their type is not read here.
    return isAccess(judged) ? { access: judged as Access<C> } : { error: refusalOf(judged) };
  } catch (error) {
    return { error };
  }
}

/** Returns the refusal for `onRefused`: a defect becomes the cause of `unexpected`. */
export function toAccessError(error: unknown): AccessError {
  return error instanceof AccessError ? error : new AccessError('unexpected', { cause: error });
}

/** The last admission of each request, by the object that identifies the request. */
export const admissions = new WeakMap<
  object,
  {
    readonly server: ResourceServer<RegisteredClaims>;
    readonly policy: Policy<unknown>;
    readonly access: Access<unknown>;
  }
>();

/** Readers of the access that a request was granted. `D` are the claims that its server provides. */
export interface AccessReaders<Q, D = RegisteredClaims> {
  /**
   * Returns the access that this server granted to a request; the claims have the types of the policy's schema. Reads the
   * record of the package, never a property of the request. Throws `TypeError` without access.
   */
  accessOf<C = D>(request: Q, policy?: Policy<C>): Access<HandedClaims<C, D>>;
  /** Like `accessOf`, but returns `undefined` without access. */
  findAccess<C = D>(request: Q, policy?: Policy<C>): Access<HandedClaims<C, D>> | undefined;
}

/** The server and the policy that must have admitted a request; each is any if it is absent. */
interface Admitter<C> {
  readonly server?: ResourceServer<RegisteredClaims> | undefined;
  readonly policy?: Policy<C> | undefined;
}

export function findAccess<C>(
  request: object,
  { server, policy }: Admitter<C>,
): Access<HandedClaims<C, RegisteredClaims>> | undefined {
  const found = admissions.get(request);
  if (found === undefined || (policy !== undefined && found.policy !== policy)) return undefined;
  if (server !== undefined && found.server !== server) return undefined;
  return found.access as Access<HandedClaims<C, RegisteredClaims>>; // the schema of this policy returned these claims
}

export function accessOf<C>(request: object, by: Admitter<C>): Access<HandedClaims<C, RegisteredClaims>> {
  const access = findAccess(request, by);
  if (access !== undefined) return access;
  throw new TypeError(
    admissions.has(request)
      ? 'accessOf: another policy or server authorized this request; pass the policy of the last authorize(…)'
      : 'accessOf: this request was not authorized; put authorize(policy) before the handler, or use findAccess',
  );
}
