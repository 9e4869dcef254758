import { AccessError } from '../failures.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import { refuseOnWorkerd } from '../platform.ts';
import type { Policy } from '../policy/policy.ts';
import type { Refusal } from '../refusal/refusal.ts';
import { isAccess, refusalOf } from '../resource-server/access.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';

export interface ProtectedRequest<T, C> {
  readonly request: ResourceRequest;
  readonly policy: Policy<C>;
  readonly connection: Connection | undefined;
  /** URL of the metadata, for the challenge. Default: the server's. */
  readonly metadataUrl?: string | undefined;
  /** Realm of the challenge. Default: the audiences of the server. */
  readonly realm?: (() => string | undefined) | undefined;
  /** Errors that it throws are passed to the framework: they are not refusals. */
  readonly admit: (access: Access<C>) => T | Promise<T>;
  readonly refuse: (refusal: Refusal, error: unknown) => T;
}

/** Authorizes a request, then calls `admit` or `refuse`: the step shared by the adapters and the service. */
export async function admitOrRefuse<T, C>(
  server: ResourceServer<RegisteredClaims>,
  { request, policy, connection, metadataUrl, realm, admit, refuse }: ProtectedRequest<T, C>,
): Promise<T> {
  let error: unknown;
  let access: Access<C> | undefined;
  try {
    const judged: unknown = await server.judge(request, policy, connection);
    // The schema of the policy returned these claims; without a schema their type is not read here.
    if (isAccess(judged)) access = judged as Access<C>;
    else error = refusalOf(judged);
  } catch (defect) {
    error = defect;
  }
  if (access !== undefined) return admit(access);
  const context = { policy, connection, metadataUrl, realm: realm?.() };
  return refuse(server.describeRefusal(error, request, context), error);
}

/** Returns the refusal for `onRefused`: a defect becomes the cause of `unexpected`. */
export function toAccessError(error: unknown): AccessError {
  return error instanceof AccessError ? error : new AccessError('unexpected', { cause: error });
}

/** Refuses workerd, whose `node:http` keeps one of several values of a header: a second Authorization would be invisible. */
export function checkNodeHttp(caller: string): void {
  refuseOnWorkerd(caller, 'whose node:http drops header values; take portcullis/fetch or portcullis/hono');
}
