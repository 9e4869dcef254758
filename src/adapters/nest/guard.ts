import type { IncomingMessage } from 'node:http';
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
import { AccessError } from '../../failures.ts';
import type { Policy } from '../../policy/policy.ts';
import type { Refusal } from '../../refusal/refusal.ts';
import type { ResourceServer } from '../../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import { type AccessReaders, findAccess as findGrantedAccess } from '../admission.ts';
import type { AdapterOptions, Checkpoint, Visitor } from '../checkpoint.ts';
import { type RoutePolicy, readRoutePolicy } from '../forms.ts';
import { createNodeCheckpoint, describeNode, setNonce } from '../node-middleware.ts';
import { type CalledRequest, findCalledRequest, findResponse, readHeld, transportOf } from './context.ts';

/** Options of the guard. */
export interface GuardOptions extends AdapterOptions<IncomingMessage> {
  /**
   * Finds the request of a context that is not built in, such as a gateway on `ws`. Default: HTTP requests, GraphQL contexts
   * of Apollo and Mercurius, and clients of socket.io.
   */
  readonly findRequest?: ((context: ExecutionContext) => IncomingMessage | undefined) | undefined;
  /** Policy of routes without a decorator; `{}` requires any valid token. Default: such a route fails with a `TypeError`. */
  readonly defaultPolicy?: Policy<unknown> | undefined;
}

/** Key of the metadata that a decorator writes: the policy of a route, or `open`. */
export const routeKey = Symbol('portcullis: policy');

interface GuardedCall extends CalledRequest {
  readonly checkpoint: Checkpoint<IncomingMessage>;
  /** Policies that admitted the request. A WebSocket has one request, its upgrade, for messages to several routes. */
  readonly admittedBy: Set<RoutePolicy<unknown>>;
}

/** Requests that guards received, by context: an HTTP request, a GraphQL context, a WebSocket client. */
const guarded = new WeakMap<object, GuardedCall>();

/** Carries a refusal from the guard to the filter that sends it. */
class RefusedRequest extends HttpException {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.body, refusal.status);
    this.refusal = refusal;
  }
}

/** Mounted at every route with a policy, so that no filter of the application changes the refusal. */
class RefusalFilter implements ExceptionFilter<RefusedRequest | AccessError> {
  catch(error: RefusedRequest | AccessError, host: ArgumentsHost): unknown {
    const transport = transportOf(host);
    if (error instanceof RefusedRequest) return transport.refuse(host, error.refusal);
    // A handler threw it, for a request that a guard admitted.
    const call = findGuarded(host);
    const refusal = call?.checkpoint.describeThrown(error, describe(call));
    if (refusal === undefined) throw error;
    return transport.refuse(host, refusal);
  }
}
Catch(RefusedRequest, AccessError)(RefusalFilter);
export const refusalFilter: ExceptionFilter = new RefusalFilter();

/** Mounted at every route with a policy: without the guard a policy would protect nothing. */
export const mustBeAdmitted: NestInterceptor = {
  intercept(context: ExecutionContext, next: CallHandler) {
    const route = findRoute(context);
    if (route !== 'open' && (route === undefined || !findGuarded(context)?.admittedBy.has(route))) {
      throw new TypeError(unguarded);
    }
    return next.handle();
  },
};
const unguarded = 'No guard has validated this request: put @Protect on the route, and mount createGuard(…)';

function findGuarded(host: ArgumentsHost): GuardedCall | undefined {
  return guarded.get(transportOf(host).key(host));
}

/**
 * Creates the guard of a Nest application on Express or Fastify, for HTTP, GraphQL and WebSocket contexts. Without
 * `defaultPolicy`, a route without a decorator fails with a `TypeError`, to which Nest responds with 500.
 *
 * @example
 * app.useGlobalGuards(createGuard(resourceServer));
 */
export function createGuard(server: ResourceServer<RegisteredClaims>, options: GuardOptions = {}): CanActivate {
  const { defaultPolicy, ...others } = options;
  const checkpoint = createNodeCheckpoint('createGuard', server, others, ['findRequest', 'defaultPolicy']);
  const byDefault = defaultPolicy === undefined ? undefined : readRoutePolicy(defaultPolicy, 'required');
  const admit = async (
    context: ExecutionContext,
    call: CalledRequest,
    route: RoutePolicy<unknown>,
  ): Promise<boolean> => {
    const admittedBy = findGuarded(context)?.admittedBy ?? new Set();
    guarded.set(transportOf(context).key(context), { ...call, checkpoint, admittedBy });
    const { access, refusal } = await checkpoint.pass(route, describe(call));
    if (refusal !== undefined) throw new RefusedRequest(refusal);
    admittedBy.add(route);
    const response = findResponse(context);
    if (access !== undefined && response !== undefined) setNonce(access, response);
    return true;
  };
  return {
    canActivate(context) {
      const route = findRoute(context) ?? byDefault;
      if (route === undefined) throw new TypeError(describeUndeclared(context));
      if (route === 'open') return true;
      const call = readHeld(options.findRequest?.(context)) ?? findCalledRequest(context);
      if (call !== undefined) return admit(context, call, route);
      throw new TypeError('createGuard: this context has no known HTTP request; return it from findRequest');
    },
  };
}

/** Returns the access of a context or of its request. Throws `TypeError` if the request was not authorized. */
export const accessOf: AccessReaders<ExecutionContext | IncomingMessage>['accessOf'] = (call, policy) => {
  const access = findAccess(call, policy);
  if (access === undefined) throw new TypeError(unguarded);
  return access;
};

/** Like `accessOf`, but returns `undefined` without access. */
export const findAccess: AccessReaders<ExecutionContext | IncomingMessage>['findAccess'] = (call, policy) => {
  const incoming = 'getHandler' in call ? findGuarded(call)?.incoming : readHeld(call)?.incoming;
  return incoming === undefined ? undefined : findGrantedAccess(incoming, policy);
};

/** Express removes prefixes from `url`; a proof is for the URL that the client requested. */
function describe({ incoming, target }: CalledRequest): Visitor<IncomingMessage> {
  return describeNode(incoming, target, incoming);
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
