import type { IncomingMessage } from 'node:http';
import {
  type ArgumentsHost,
  applyDecorators,
  type CallHandler,
  type CanActivate,
  Catch,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  type NestInterceptor,
  SetMetadata,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import { AccessError } from '../failures.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { HandedClaims, Policy } from '../policy/policy.ts';
import type { ErrorBody, ErrorReport } from '../refusal/error-body.ts';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { checkNodeHttp } from './admission.ts';
import { findAccessOf } from './admitted.ts';
import { type Checkpoint, checkAdapterOptions, createCheckpoint, type Demand, demand } from './checkpoint.ts';
import type { MetadataOptions } from './metadata.ts';
import {
  answerCall,
  type CalledRequest,
  findCalledRequest,
  findResponse,
  keyOfCall,
  readHeld,
} from './nest-context.ts';
import { createNodeMetadata, type NodeMiddleware, setNonce } from './node-answer.ts';
import { readNodeRequest } from './node-request.ts';

export type { MetadataOptions } from './metadata.ts';

/** What the adapter may need to know of the application around it. */
export interface GuardOptions {
  /** Called for every refusal, for logs and metrics. Errors it throws, or rejects with, are ignored. */
  readonly onRefused?: (error: unknown, request: IncomingMessage) => unknown;
  /** Realm of the challenge for a request, such as the name of its tenant. Default: the audiences of the server. */
  readonly realm?: (request: IncomingMessage) => string | undefined;
  /** Makes the body of a refusal for a request, such as one with its id. Default: the form that the server has. */
  readonly errorBody?: (report: ErrorReport, request: IncomingMessage) => ErrorBody;
  /**
   * Finds the request of a call that has it elsewhere, such as that of a gateway on `ws`. Default: HTTP requests, GraphQL
   * contexts of Apollo and Mercurius, and clients of socket.io are known.
   */
  readonly findRequest?: (context: ExecutionContext) => IncomingMessage | undefined;
}

/** A decorator of a route or of a controller with all its routes. */
export type RouteDecorator = MethodDecorator & ClassDecorator;

/** Says who may call a route. */
export interface Protect {
  (policy: Policy<unknown>): RouteDecorator;
  /** The same for a route that is open as well: no `Authorization` and no `DPoP` → no access; all else is judged. */
  optional(policy: Policy<unknown>): RouteDecorator;
}

const demandKey = Symbol('portcullis: policy');
/** A request, and the guard that has judged it. */
interface GuardedCall extends CalledRequest {
  readonly checkpoint: Checkpoint<IncomingMessage>;
}

/** Requests that guards have judged, by the call: an HTTP request, a GraphQL context, a client on a WebSocket. */
const called = new WeakMap<object, GuardedCall>();
/** What requests were judged by. A WebSocket has one request, its upgrade, for messages to several routes. */
const judged = new WeakMap<object, Set<Demand<unknown>>>();

/** A refused request, on its way from the guard to the one who answers it. */
class RefusedRequest extends HttpException {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.body, refusal.status);
    this.refusal = refusal;
  }
}

/** Stands at every route with a policy, so that no filter of the application gives the refusal another form. */
class RefusalFilter implements ExceptionFilter<RefusedRequest | AccessError> {
  catch(error: RefusedRequest | AccessError, host: ArgumentsHost): unknown {
    if (error instanceof RefusedRequest) return answerCall(host, error.refusal);
    // Thrown by a handler, for a request that a guard has let in.
    const call = called.get(keyOfCall(host));
    const refusal = call?.checkpoint.describeThrown(error, see(call));
    if (refusal === undefined) throw error;
    return answerCall(host, refusal);
  }
}
Catch(RefusedRequest, AccessError)(RefusalFilter);
const refusalFilter = new RefusalFilter();

/** Stands there too: without the guard a policy protects nothing. */
const mustBeJudged: NestInterceptor = {
  intercept(context: ExecutionContext, next: CallHandler) {
    const asked = readDemand(context);
    const call = called.get(keyOfCall(context));
    if (asked !== 'open' && (call === undefined || judged.get(call.incoming)?.has(asked) !== true)) {
      throw new TypeError(unjudged);
    }
    return next.handle();
  },
};
const unjudged = 'No guard has judged this request: put @Protect on the route, and mount createGuard(…)';

/**
 * Creates the guard of a Nest application on Express or Fastify, for HTTP, GraphQL and WebSocket contexts. It lets nothing
 * through that does not say who may: a route without `@Protect` and without `@Open` fails with a `TypeError`, which Nest
 * answers with 500.
 *
 * @example
 * app.useGlobalGuards(createGuard(resourceServer));
 */
export function createGuard(server: ResourceServer<RegisteredClaims>, options: GuardOptions = {}): CanActivate {
  checkNodeHttp('createGuard');
  checkAdapterOptions('createGuard', options, ['onRefused', 'realm', 'errorBody', 'findRequest']);
  const checkpoint = createCheckpoint<IncomingMessage>('createGuard', server, options);
  return {
    canActivate(context) {
      const asked = readDemand(context);
      if (asked === 'open') return true;
      const call = readHeld(options.findRequest?.(context)) ?? findCalledRequest(context);
      if (call === undefined) {
        throw new TypeError('createGuard: this call has no HTTP request that is known; name it with findRequest');
      }
      called.set(keyOfCall(context), { ...call, checkpoint });
      const { incoming } = call;
      return checkpoint.pass<boolean, unknown>(asked, {
        ...see(call),
        admit: (access) => {
          judged.set(incoming, (judged.get(incoming) ?? new Set()).add(asked));
          const response = findResponse(context);
          if (access !== undefined && response !== undefined) setNonce(access, response);
          return true;
        },
        refuse: (refusal) => {
          throw new RefusedRequest(refusal);
        },
      });
    },
  };
}

/**
 * Says who may call a route, or the routes of a controller; that of a route goes before that of its controller.
 * Without the guard the route fails with a `TypeError`. Throws `TypeError` for a policy that cannot work.
 *
 * @example
 * class Messages {
 *   @Get()
 *   @Protect({ scopes: ['read:messages'] })
 *   list(@CurrentAccess() access: Access) {
 *     return access.claims;
 *   }
 * }
 */
export const Protect: Protect = Object.assign((policy: Policy<unknown>) => protect(policy, 'required'), {
  optional: (policy: Policy<unknown>) => protect(policy, 'optional'),
});

/** Says that everybody may call a route, without a token; one that is sent along is not looked at. */
export function Open(): RouteDecorator {
  return SetMetadata(demandKey, 'open');
}

/**
 * Hands `Access` to a parameter of a route with `@Protect`; `undefined` to one with `@Protect.optional` that was called
 * without credentials. On a route that no guard has judged: `TypeError`.
 */
export const CurrentAccess: () => ParameterDecorator = createParamDecorator(
  (_data: unknown, context: ExecutionContext): Access<unknown> | undefined => {
    const asked = readDemand(context);
    return asked !== 'open' && asked.credentials === 'optional' ? findAccess(context) : accessOf(context);
  },
);

/**
 * Serves the metadata of the resource (RFC 9728), and lets challenges link to it. Mount it at the root. Throws `TypeError`
 * for options that cannot work.
 *
 * @example
 * app.use(createMetadata(resourceServer, { resource: 'https://api.example/', authorizationServers: ['https://idp.example/'] }));
 */
export function createMetadata(server: ResourceServer<RegisteredClaims>, options: MetadataOptions): NodeMiddleware {
  return createNodeMetadata(server, options);
}

/** What a call that was let in may do, by its context or its request. `TypeError` if nobody has let it in. */
export function accessOf<C = RegisteredClaims>(
  call: ExecutionContext | IncomingMessage,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> {
  const access = findAccess(call, policy);
  if (access === undefined) throw new TypeError(unjudged);
  return access;
}

/** The same; `undefined` if nobody has let it in. */
export function findAccess<C = RegisteredClaims>(
  call: ExecutionContext | IncomingMessage,
  policy?: Policy<C>,
): Access<HandedClaims<C, RegisteredClaims>> | undefined {
  const incoming = 'getHandler' in call ? called.get(keyOfCall(call))?.incoming : readHeld(call)?.incoming;
  return incoming === undefined ? undefined : findAccessOf(incoming, policy);
}

function protect(policy: Policy<unknown>, credentials: Demand<unknown>['credentials']): RouteDecorator {
  // Without a policy any valid token would do: a route says so with {}.
  checkPolicy(policy);
  const asked = demand(policy, credentials);
  return applyDecorators(SetMetadata(demandKey, asked), UseFilters(refusalFilter), UseInterceptors(mustBeJudged));
}

/** Express cuts prefixes off `url`; a proof is for the URL that the client called. */
function see({ incoming, target }: CalledRequest) {
  return { key: incoming, request: readNodeRequest(incoming, target), connection: incoming.socket, told: incoming };
}

function readDemand(context: ExecutionContext): Demand<unknown> | 'open' {
  const places = [context.getHandler(), context.getClass()];
  for (const place of places) {
    // Nothing else writes under this key.
    const asked = Reflect.getMetadata(demandKey, place) as Demand<unknown> | 'open' | undefined;
    if (asked !== undefined) return asked;
  }
  const [route, controller] = places.map(({ name }) => name);
  throw new TypeError(`createGuard: put @Protect(policy) or @Open() on ${controller}.${route} or its controller`);
}
