import type { Refusal } from '../http/refusal.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server.ts';

/** One request before the gate, and the two ways on from there. */
export interface Arrival<T, C> {
  readonly request: ResourceRequest;
  readonly policy: Policy<C>;
  readonly connection: Connection | undefined;
  /** What it throws goes to the framework: it is no refusal. */
  readonly admit: (access: Access<C>) => T | Promise<T>;
  readonly refuse: (refusal: Refusal, error: unknown) => T;
}

/** Judges a request and goes one of the two ways: what all adapters do. Waits only where the resource server has to. */
export function passGate<T, C>(server: ResourceServer, arrival: Arrival<T, C>): T | Promise<T> {
  const { request, policy, connection, admit } = arrival;
  const refuse = (error: unknown): T =>
    arrival.refuse(server.describeRefusal(error, request, { policy, connection }), error);
  let access: Access<C> | Promise<Access<C>>;
  try {
    access = server.authorize(request, policy, connection);
  } catch (error) {
    return refuse(error);
  }
  return access instanceof Promise ? access.then(admit, refuse) : admit(access);
}

/** Throws `TypeError` for a route that cannot work, where it is made: a policy that is none, or no handler. */
export function checkRoute(policy: Policy<unknown>, handler: unknown): void {
  checkPolicy(policy);
  if (typeof handler !== 'function') {
    throw new TypeError('protect: write protect(policy, handler), with the function that answers requests let in');
  }
}

/** Holds programs without types to a resource server. */
export function checkServer(caller: string, server: unknown): void {
  // Any value may come; what has the two methods is one.
  const { authorize, describeRefusal } = (server ?? {}) as Partial<ResourceServer>;
  if (typeof authorize !== 'function' || typeof describeRefusal !== 'function') {
    throw new TypeError(`${caller}: hand over what createResourceServer returned`);
  }
}
