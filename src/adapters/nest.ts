import type { IncomingMessage, ServerResponse } from 'node:http';
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
import { checkOptionMembers } from '../option-members.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import type { Refusal } from '../refusal/refusal.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { admitOrRefuse, checkNodeHttp, checkServer } from './admission.ts';
import { sendRefusal, setNonce } from './node-answer.ts';
import { readNodeRequest } from './node-request.ts';

/** What the adapter may need to know of the application around it. */
export interface GuardOptions {
  /** Told of every refusal, for logs and metrics. Default: nobody is. */
  readonly onRefused?: (error: unknown, request: IncomingMessage) => void;
}

/** A decorator of a route or of a controller with all its routes. */
export type RouteDecorator = MethodDecorator & ClassDecorator;

const policyKey = Symbol('portcullis: policy');
const admitted = new WeakMap<object, Access<unknown>>();

/** A refused request, on its way from the guard to the one who answers it. */
class RefusedRequest extends HttpException {
  readonly refusal: Refusal;

  constructor(refusal: Refusal, cause: unknown) {
    super(refusal.body, refusal.status, { cause });
    this.refusal = refusal;
  }
}

class RefusalFilter implements ExceptionFilter<RefusedRequest> {
  catch({ refusal }: RefusedRequest, host: ArgumentsHost): void {
    sendRefusal(refusal, host.switchToHttp().getResponse<ServerResponse>());
  }
}
Catch(RefusedRequest)(RefusalFilter);

/** Stands at every route with a policy, so that no filter of the application gives the refusal another form. */
const refusalFilter = new RefusalFilter();

/** Stands there too: without the guard a policy protects nothing. */
const mustBeJudged: NestInterceptor = {
  intercept(context: ExecutionContext, next: CallHandler) {
    if (readPolicy(context) !== 'open') findAccess(context);
    return next.handle();
  },
};

/**
 * Creates the guard of a Nest application on Express. It lets nothing through that does not say who may: a route
 * without `@Protect` and without `@Open` fails with a `TypeError`, which Nest answers with 500.
 *
 * @example
 * app.useGlobalGuards(createGuard(resourceServer));
 */
export function createGuard(server: ResourceServer<RegisteredClaims>, options: GuardOptions = {}): CanActivate {
  checkNodeHttp('createGuard');
  checkServer('createGuard', server);
  checkOptionMembers<GuardOptions>('createGuard', options, { onRefused: true });
  return {
    canActivate(context) {
      const policy = readPolicy(context);
      if (policy === 'open') return true;
      const incoming = readIncoming(context);
      return admitOrRefuse(server, {
        // Express cuts prefixes off `url`; a proof is for the URL that the client called.
        request: readNodeRequest(incoming, incoming.originalUrl),
        policy,
        connection: incoming.socket,
        admit: (access) => {
          admitted.set(incoming, access);
          setNonce(access, context.switchToHttp().getResponse<ServerResponse>());
          return true;
        },
        refuse: (refusal, error): boolean => {
          options.onRefused?.(error, incoming);
          throw new RefusedRequest(refusal, error);
        },
      });
    },
  };
}

/**
 * Says who may call a route, or the routes of a controller; that of a route goes before that of its controller.
 * Where the guard is not mounted, the route fails with a `TypeError`. Throws `TypeError` for a policy that cannot work.
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
export function Protect(policy: Policy<unknown>): RouteDecorator {
  checkPolicy(policy);
  return applyDecorators(SetMetadata(policyKey, policy), UseFilters(refusalFilter), UseInterceptors(mustBeJudged));
}

/** Says that everybody may call a route, without a token; one that is sent along is not looked at. */
export function Open(): RouteDecorator {
  return SetMetadata(policyKey, 'open');
}

/** Hands `Access` to a parameter of a route with `@Protect`. On a route that no guard has judged: `TypeError`. */
export const CurrentAccess: () => ParameterDecorator = createParamDecorator(
  (_data: unknown, context: ExecutionContext): Access<unknown> => findAccess(context),
);

function findAccess(context: ExecutionContext): Access<unknown> {
  const access = admitted.get(readIncoming(context));
  if (access === undefined) {
    throw new TypeError('No guard has judged this request: put @Protect on the route, and mount createGuard(…)');
  }
  return access;
}

function readPolicy(context: ExecutionContext): Policy<unknown> | 'open' {
  const places = [context.getHandler(), context.getClass()];
  for (const place of places) {
    // Nothing else writes under this key.
    const policy = Reflect.getMetadata(policyKey, place) as Policy<unknown> | 'open' | undefined;
    if (policy !== undefined) return policy;
  }
  const [route, controller] = places.map(({ name }) => name);
  throw new TypeError(`createGuard: put @Protect(policy) or @Open() on ${controller}.${route} or its controller`);
}

function readIncoming(context: ExecutionContext): IncomingMessage & { readonly originalUrl: string } {
  const request = context.switchToHttp().getRequest<IncomingMessage & { readonly originalUrl: string }>();
  if (!Array.isArray(request.rawHeaders)) {
    throw new TypeError('createGuard: judges only HTTP requests of @nestjs/platform-express');
  }
  return request;
}
