import type { AccessError } from '../failures.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { type MaybePromise, settle } from '../maybe-promise.ts';
import { refuseOnWorkerd } from '../platform.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import type { Refusal } from '../refusal/refusal.ts';
import { isAccess, refusalOf } from '../resource-server/access.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';

/** One request to a protected route, and what follows: the handler or a refusal. */
export interface ProtectedRequest<T, C> {
  readonly request: ResourceRequest;
  readonly policy: Policy<C>;
  readonly connection: Connection | undefined;
  /** Where the challenge says that the metadata is. Default: where the server says. */
  readonly metadataUrl?: string | undefined;
  /** Realm of the challenge. Default: the audiences of the server. */
  readonly realm?: (() => string | undefined) | undefined;
  /** What it throws goes to the framework: it is no refusal. */
  readonly admit: (access: Access<C>) => MaybePromise<T>;
  readonly refuse: (refusal: Refusal, error: unknown) => T;
}

/**
 * Judges a request, then calls `admit` or `refuse`: what the adapters and the service all do. Waits only if the resource
 * server has to.
 */
export function admitOrRefuse<T, C>(
  server: ResourceServer<RegisteredClaims>,
  call: ProtectedRequest<T, C>,
): MaybePromise<T> {
  const { request, policy, connection, metadataUrl, realm, admit } = call;
  const refuse = (error: unknown): T =>
    call.refuse(server.describeRefusal(error, request, { policy, connection, metadataUrl, realm: realm?.() }), error);
  return settle<Access<C> | AccessError, T>(
    // The schema of the policy has given these claims; where there is none, nobody here reads them.
    () => server.judge(request, policy, connection) as MaybePromise<Access<C> | AccessError>,
    (judged) => (isAccess(judged) ? admit(judged) : refuse(refusalOf(judged))),
    refuse,
  );
}

/** Throws `TypeError` for a route that cannot work, where it is made: a policy that is none, or no handler. */
export function checkRoute(policy: Policy<unknown>, handler: unknown): void {
  checkPolicy(policy);
  if (typeof handler !== 'function') {
    throw new TypeError('protect: write protect(policy, handler), with the function that answers requests let in');
  }
}

/**
 * Holds the adapters of `node:http` to runtimes that have it whole. That of workerd keeps one of several values of a
 * header, and a second Authorization would go unseen.
 */
export function checkNodeHttp(caller: string): void {
  refuseOnWorkerd(caller, 'whose node:http drops header values; take portcullis/fetch or portcullis/hono');
}
