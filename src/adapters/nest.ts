import {
  applyDecorators,
  type CanActivate,
  createParamDecorator,
  type DynamicModule,
  type ExecutionContext,
  type FactoryProvider,
  Inject,
  Module,
  type ModuleMetadata,
  type Provider,
  SetMetadata,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { checkMembers } from '../core/option-members.ts';
import { checkPolicy } from '../core/policy/checked-policy.ts';
import type { Policy } from '../core/policy/policy.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import { createForms, type Forms, type RoutePolicy, readRoutePolicy, refuseSecond } from './forms.ts';
import {
  accessOf,
  createGuard,
  findAccess,
  findRoute,
  type GuardOptions,
  mustBeAdmitted,
  refusalFilter,
  routeKey,
} from './nest/guard.ts';

export type { RefusedRequest } from './checkpoint.ts';
export { createBackchannelLogout, createSignalsReceiver } from './events/node-events.ts';
export type { MetadataOptions } from './metadata.ts';
export type { GuardOptions } from './nest/guard.ts';
export { accessOf, createGuard, findAccess } from './nest/guard.ts';
export { createMetadata } from './node-middleware.ts';

/** A decorator of a route, or of a controller with all its routes. */
export type RouteDecorator = MethodDecorator & ClassDecorator;

/** Sets the policy of a route. */
export type Protect = Forms<(policy: Policy<unknown>) => RouteDecorator>;

/**
 * Sets the policy of a route, or of the routes of a controller; a route's policy replaces its controller's. Without the guard
 * the route fails with a `TypeError`. Throws `TypeError` for an invalid policy.
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
export const Protect: Protect = createForms((credentials) => (policy: Policy<unknown>, second?: unknown) => {
  refuseSecond('Protect', second);
  return protect(policy, credentials);
});

/** Sets the policy of a route like `@Protect({ scopes })`: each of the scopes is required. */
export function Scopes(...scopes: readonly [string, ...string[]]): RouteDecorator {
  return protect({ scopes }, 'required');
}

/** Opens a route: no token is required, and one that is sent is ignored. */
export function Open(): RouteDecorator {
  return SetMetadata(routeKey, 'open');
}

/**
 * Passes `Access` to a parameter of a route; `undefined` to one with `@Protect.optional` whose request had no credentials. On a
 * route without the guard: `TypeError`.
 */
export const CurrentAccess: () => ParameterDecorator = createParamDecorator(
  (_data: unknown, context: ExecutionContext): Access<unknown> | undefined => {
    const route = findRoute(context);
    return typeof route === 'object' && route.credentials === 'optional' ? findAccess(context) : accessOf(context);
  },
);

function protect(policy: Policy<unknown>, credentials: RoutePolicy<unknown>['credentials']): RouteDecorator {
  // Without a policy, any valid token would be admitted: a route states that with {}.
  checkPolicy(policy);
  const route = readRoutePolicy(policy, credentials);
  return applyDecorators(SetMetadata(routeKey, route), UseFilters(refusalFilter), UseInterceptors(mustBeAdmitted));
}

/** Options of the module: its resource server, and the options of its guard. */
export interface ModuleOptions extends GuardOptions {
  /** The resource server, as `createResourceServer` returned it. */
  readonly resourceServer: ResourceServer<RegisteredClaims>;
  /** Policy of routes without a decorator. Default: `{}`, which requires any valid token. */
  readonly defaultPolicy?: Policy<unknown> | undefined;
}

/** Options of the module, created by a factory with dependencies, as in other modules of Nest. */
export type ModuleAsyncOptions = Pick<ModuleMetadata, 'imports'> &
  Pick<FactoryProvider<ModuleOptions>, 'inject' | 'useFactory'>;

const moduleOptions = Symbol('portcullis: options');

/** The guard of the module, for `@UseGuards` and for tests that override it. */
export class PortcullisGuard implements CanActivate {
  /** Admits or refuses a request to a handler. */
  readonly canActivate: CanActivate['canActivate'];

  /** Created by Nest. */
  constructor({ resourceServer, ...options }: ModuleOptions) {
    const guard = createGuard(resourceServer, { ...options, defaultPolicy: options.defaultPolicy ?? {} });
    this.canActivate = guard.canActivate;
  }
}
Inject(moduleOptions)(PortcullisGuard, undefined, 0);

/**
 * Protects every HTTP route of an application: without a decorator, by `defaultPolicy`.
 *
 * @example
 * @Module({ imports: [PortcullisModule.forRoot({ resourceServer })] })
 * class App {}
 */
// biome-ignore lint/complexity/noStaticOnlyClass: modules of Nest are classes.
export class PortcullisModule {
  /** Creates the module for a resource server, which the application's shutdown does not close. */
  static forRoot(options: ModuleOptions): DynamicModule {
    return describeModule({ provide: moduleOptions, useValue: options });
  }

  /** Creates the module with what a factory returns. The shutdown of the application closes the resource server. */
  static forRootAsync(options: ModuleAsyncOptions): DynamicModule {
    checkMembers('PortcullisModule.forRootAsync', options, ['imports', 'inject', 'useFactory']);
    const { imports = [], inject = [], useFactory } = options;
    const shutdown = {
      provide: Symbol('portcullis: shutdown'),
      inject: [moduleOptions],
      useFactory: ({ resourceServer }: ModuleOptions) => ({ onApplicationShutdown: () => resourceServer.close() }),
    };
    const described = describeModule({ provide: moduleOptions, inject, useFactory }, shutdown);
    return { ...described, imports };
  }
}
Module({})(PortcullisModule);

function describeModule(...providers: readonly Provider[]): DynamicModule {
  return {
    module: PortcullisModule,
    global: true,
    providers: [
      ...providers,
      PortcullisGuard,
      { provide: APP_GUARD, useExisting: PortcullisGuard },
      { provide: APP_FILTER, useValue: refusalFilter },
    ],
    exports: [moduleOptions, PortcullisGuard],
  };
}
