import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  type NestInterceptor,
} from '@nestjs/common';
import { AccessError } from '../../core/failures.ts';
import type { Policy } from '../../core/policy/policy.ts';
import type { Refusal } from '../../core/refusal/refusal.ts';
import type { ResourceServer } from '../../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { type AccessReaders, findAccess as findGrantedAccess } from '../admission.ts';
import type { AdapterOptions, Checkpoint, Visitor } from '../checkpoint.ts';
import { type RoutePolicy, readRoutePolicy } from '../forms.ts';
import { createNodeCheckpoint, describeNode, sendRefusal, setChallenge, setNonce } from '../node-middleware.ts';

/** Options of the guard. */
export interface GuardOptions extends AdapterOptions<IncomingMessage> {
  /** Policy of routes without a decorator; `{}` requires any valid token. Default: such a route fails with a `TypeError`. */
  readonly defaultPolicy?: Policy<unknown> | undefined;
}

/** Key of the metadata that a decorator writes: the policy of a route, or `open`. */
export const routeKey = Symbol('portcullis: policy');

interface GuardedCall {
  readonly visitor: Visitor<IncomingMessage>;
  readonly checkpoint: Checkpoint<IncomingMessage>;
  readonly admittedBy: RoutePolicy<unknown>;
}

/** Requests that guards admitted. */
const guarded = new WeakMap<object, GuardedCall>();

/** Carries a refusal from the guard to the filter that sends it. */
class RefusedRequest extends HttpException {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.body, refusal.status);
    this.refusal = refusal;
  }
}

/** The reply of Fastify. */
interface Reply {
  readonly raw: ServerResponse;
  code(status: number): Reply;
  headers(values: Readonly<Record<string, string>>): Reply;
  send(body: Buffer): unknown;
}

/** Mounted at every route with a policy, so that no filter of the application changes the refusal. */
class RefusalFilter implements ExceptionFilter<RefusedRequest | AccessError> {
  catch(error: RefusedRequest | AccessError, host: ArgumentsHost): unknown {
    // A refusal that a handler has thrown belongs to a request that a guard admitted.
    const call = findGuarded(host);
    const refusal =
      error instanceof RefusedRequest ? error.refusal : call?.checkpoint.describeThrown(error, call.visitor);
    if (refusal === undefined) throw error;
    const response = host.switchToHttp().getResponse<ServerResponse | Reply>();
    if (!('raw' in response)) return sendRefusal(refusal, response);
    // Bytes, because Fastify adds a charset to the type of a string.
    return response.code(refusal.status).headers(refusal.headers).send(Buffer.from(refusal.body));
  }
}
Catch(RefusedRequest, AccessError)(RefusalFilter);
export const refusalFilter: ExceptionFilter = new RefusalFilter();

/** Mounted at every route with a policy: without the guard a policy would protect nothing. */
export const mustBeAdmitted: NestInterceptor = {
  intercept(context: ExecutionContext, next: CallHandler) {
    const route = findRoute(context);
    if (route !== 'open' && (route === undefined || findGuarded(context)?.admittedBy !== route))
      throw new TypeError(unguarded);
    return next.handle();
  },
};
const unguarded = 'No guard has validated this request: put @Protect on the route, and mount createGuard(…)';

function findGuarded(host: ArgumentsHost): GuardedCall | undefined {
  const incoming = readRequest(host.getArgByIndex(0))?.incoming;
  return incoming && guarded.get(incoming);
}

/**
 * Creates the guard of a Nest application on Express or Fastify, for HTTP contexts; in every other context it throws a
 * `TypeError`. Without `defaultPolicy`, a route without a decorator fails with a `TypeError`, to which Nest responds with 500.
 *
 * @example
 * app.useGlobalGuards(createGuard(resourceServer));
 */
export function createGuard(server: ResourceServer<RegisteredClaims>, options: GuardOptions = {}): CanActivate {
  const { defaultPolicy, ...others } = options;
  const checkpoint = createNodeCheckpoint('createGuard', server, others, ['defaultPolicy']);
  const byDefault = defaultPolicy === undefined ? undefined : readRoutePolicy(defaultPolicy, 'required');
  const admit = async (context: ExecutionContext, route: RoutePolicy<unknown>): Promise<boolean> => {
    const read = readRequest(context.switchToHttp().getRequest());
    if (read === undefined) throw new TypeError('createGuard: mount it on @nestjs/platform-express or -fastify');
    const { incoming, target } = read;
    const visitor = describeNode(incoming, target, incoming);
    const { access, refusal } = await checkpoint.pass(route, visitor);
    const response = context.switchToHttp().getResponse<ServerResponse | Reply>();
    const outgoing = 'raw' in response ? response.raw : response;
    if (refusal !== undefined) {
      // A filter of the application may send this refusal: clients need its challenge and its nonce.
      setChallenge(refusal, outgoing);
      throw new RefusedRequest(refusal);
    }
    guarded.set(incoming, { visitor, checkpoint, admittedBy: route });
    if (access !== undefined) setNonce(access, outgoing);
    return true;
  };
  return {
    async canActivate(context) {
      if (context.getType<string>() !== 'http') throw new TypeError(otherContext);
      const route = findRoute(context) ?? byDefault;
      if (route === undefined) throw new TypeError(describeUndeclared(context));
      return route === 'open' || admit(context, route);
    },
  };
}
const otherContext =
  'createGuard: it guards HTTP routes only; authorize GraphQL operations and WebSocket messages in their context, as docs/frameworks/nest.md shows';

/** Returns the access of a context or of its request. Throws `TypeError` if the request was not authorized. */
export const accessOf: AccessReaders<ExecutionContext | IncomingMessage>['accessOf'] = (call, policy) => {
  const access = findAccess(call, policy);
  if (access === undefined) throw new TypeError(unguarded);
  return access;
};

/** Like `accessOf`, but returns `undefined` without access. */
export const findAccess: AccessReaders<ExecutionContext | IncomingMessage>['findAccess'] = (call, policy) => {
  const incoming = readRequest('getHandler' in call ? call.getArgByIndex(0) : call)?.incoming;
  return incoming && findGrantedAccess(incoming, { policy });
};

/** A request of `node:http`, or a request of Fastify, which has one in `raw`. */
type Held = { readonly rawHeaders?: unknown; readonly raw?: unknown; readonly originalUrl?: string } | undefined;

/** Reads the request of a context, with the URL that the client requested; `undefined` for every other value. */
function readRequest(
  held: Held,
): { readonly incoming: IncomingMessage; readonly target: string | undefined } | undefined {
  for (const each of [held, held?.raw as Held]) {
    // Only a request of node:http has these.
    if (Array.isArray(each?.rawHeaders)) return { incoming: each as IncomingMessage, target: held?.originalUrl };
  }
  return undefined;
}

/** Finds what the decorator of a route says, else the decorator of its controller. */
export function findRoute(context: ExecutionContext): RoutePolicy<unknown> | 'open' | undefined {
  for (const target of [context.getHandler(), context.getClass()]) {
    // Only this module writes under this key.
    const route = Reflect.getMetadata(routeKey, target) as RoutePolicy<unknown> | 'open' | undefined;
    if (route !== undefined) return route;
  }
  return undefined;
}

function describeUndeclared(context: ExecutionContext): string {
  const [route, controller] = [context.getHandler(), context.getClass()].map(({ name }) => name);
  return `createGuard: put @Protect(policy) or @Open() on ${controller}.${route} or its controller`;
}
