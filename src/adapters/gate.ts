import type { Refusal } from '../http/refusal.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { Policy } from '../policy/policy.ts';
import type { Access, ResourceServer } from '../resource-server.ts';

/** One request before the gate, and the two ways on from there. */
export interface Arrival<T> {
  readonly request: ResourceRequest;
  readonly policy: Policy;
  readonly connection: Connection | undefined;
  /** What it throws goes to the framework: it is no refusal. */
  readonly admit: (access: Access) => T | Promise<T>;
  readonly refuse: (refusal: Refusal, error: unknown) => T;
}

/** Judges a request and goes one of the two ways: what all adapters do. Waits only where the resource server has to. */
export function passGate<T>(server: ResourceServer, arrival: Arrival<T>): T | Promise<T> {
  const { request, policy, connection, admit } = arrival;
  const refuse = (error: unknown): T =>
    arrival.refuse(server.describeRefusal(error, request, { policy, connection }), error);
  let access: Access | Promise<Access>;
  try {
    access = server.authorize(request, policy, connection);
  } catch (error) {
    return refuse(error);
  }
  return access instanceof Promise ? access.then(admit, refuse) : admit(access);
}

/** Holds programs without types to `protect(policy, handler)`: what is missing shows at the start, not in an answer. */
export function checkRoute(policy: unknown, handler: unknown): void {
  checkPolicy('protect', policy);
  if (typeof handler !== 'function') {
    throw new TypeError('protect: write protect(policy, handler), with the function that answers requests let in');
  }
}

/** The same for a policy alone. */
export function checkPolicy(caller: string, policy: unknown): void {
  if (typeof policy !== 'object' || policy === null) {
    throw new TypeError(`${caller}: name the policy first; {} where any valid access token is enough`);
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
