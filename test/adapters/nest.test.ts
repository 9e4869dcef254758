import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type DynamicModule,
  type ExceptionFilter,
  Get,
  HttpException,
  Module,
  UseGuards,
} from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  accessOf,
  CurrentAccess,
  createGuard,
  findAccess,
  type ModuleOptions,
  Open,
  PortcullisGuard,
  PortcullisModule,
  Protect,
  Scopes,
} from '../../src/adapters/nest.ts';
import { AccessError } from '../../src/core/failures.ts';
import type { Access } from '../../src/core/resource-server/resource-server.ts';
import { decorate } from './decorate.ts';
import { issuer } from './issuer.ts';
import { listenNest } from './listen-nest.ts';
import { createServers } from './scene.ts';

class Routes {
  undeclared() {
    return 'let in';
  }
  open() {
    return 'open to all';
  }
  openWithAccess(access: Access) {
    return access.claims;
  }
  strict() {
    return 'with the scope';
  }
}

class Declared {
  asItsController() {
    return 'with the scope';
  }
  openWithin() {
    return 'open to all';
  }
  ofItsOwn() {
    return 'with any token';
  }
}

const scopes = ['read:messages'];
decorate(Routes.prototype, 'undeclared', Get('undeclared'));
decorate(Routes.prototype, 'open', Get('open'), Open());
decorate(Routes.prototype, 'openWithAccess', Get('open-with-access'), Open());
CurrentAccess()(Routes.prototype, 'openWithAccess', 0);
decorate(Routes.prototype, 'strict', Get('strict'), Protect({ scopes }));
Controller()(Routes);
decorate(Declared.prototype, 'asItsController', Get('as-its-controller'));
decorate(Declared.prototype, 'ofItsOwn', Get('of-its-own'), Protect({}));
decorate(Declared.prototype, 'openWithin', Get('open-within'), Open());
Controller()(Declared);
Protect({ scopes })(Declared);
class Root {}
Module({ controllers: [Routes, Declared] })(Root);

describe('a guard for the entire application', () => {
  const errors: unknown[] = [];
  let origin: string;
  let close: () => Promise<void>;
  beforeAll(async () => {
    const logger = { log() {}, warn() {}, error: (...told: readonly unknown[]) => errors.push(...told) };
    const app = await NestFactory.create(Root, { logger });
    app.useGlobalGuards(createGuard(createServers(issuer).usual));
    await app.listen(0, '127.0.0.1');
    origin = await app.getUrl();
    close = () => app.close();
  });
  afterAll(() => close());

  const call = async (path: string, claims?: { readonly scope: string }) => {
    const response = await fetch(`${origin}/${path}`, { headers: claims === undefined ? {} : issuer.headers(claims) });
    return [response.status, await response.text()];
  };

  it('a route without a policy → 500, and the log states the fix', async () => {
    expect(await call('undeclared', { scope: 'read:messages' })).toEqual([
      500,
      '{"statusCode":500,"message":"Internal server error"}',
    ]);
    expect(errors.join()).toContain('createGuard: put @Protect(policy) or @Open() on Routes.undeclared');
  });

  it('an open route → 200 without a token', async () => expect(await call('open')).toEqual([200, 'open to all']));

  it('an open route of a controller with a policy → 200 without a token', async () =>
    expect(await call('open-within')).toEqual([200, 'open to all']));

  it('@CurrentAccess on an open route → TypeError', async () => {
    expect((await call('open-with-access', { scope: 'read:messages' }))[0]).toBe(500);
    expect(errors.join()).toContain('No guard has validated this request: put @Protect on the route');
  });

  it.each([
    ['strict', undefined, 401],
    ['strict', { scope: 'other' }, 403],
    ['strict', { scope: 'read:messages' }, 200],
    ['as-its-controller', undefined, 401],
    ['as-its-controller', { scope: 'other' }, 403],
    ['as-its-controller', { scope: 'read:messages' }, 200],
    ['of-its-own', undefined, 401],
    ['of-its-own', { scope: 'other' }, 200],
  ])('%s with %j → %i', async (path, claims, status) => expect((await call(path, claims))[0]).toBe(status));
});

it('a policy without the guard → 500', async () => {
  const { origin, close } = await listenNest(Root);
  try {
    for (const path of ['strict', 'as-its-controller', 'of-its-own']) {
      const response = await fetch(`${origin}/${path}`, { headers: issuer.headers({ scope: 'read:messages' }) });
      expect(response.status, path).toBe(500);
    }
  } finally {
    await close();
  }
});

const platforms = [
  ['Express', (): undefined => undefined],
  ['Fastify', (): FastifyAdapter => new FastifyAdapter()],
] as const;

describe('handlers of a route with a policy', () => {
  class Forms {
    optional(access: Access | undefined) {
      return { reader: access?.claims.sub ?? null };
    }
    forbidsWithout(): never {
      throw new AccessError('insufficient_scope', { scopes: ['admin'] });
    }
    forbids(): never {
      throw new AccessError('insufficient_scope', { scopes: ['admin'] });
    }
  }
  decorate(Forms.prototype, 'optional', Get('optional'), Protect.optional({ scopes }));
  decorate(Forms.prototype, 'forbidsWithout', Get('forbids-without'), Protect.optional({ scopes }));
  CurrentAccess()(Forms.prototype, 'optional', 0);
  decorate(Forms.prototype, 'forbids', Get('forbids'), Protect({ scopes }));
  Controller()(Forms);
  class FormsRoot {}
  Module({ controllers: [Forms] })(FormsRoot);

  it.each(platforms)('on %s: optional credentials, and a custom AccessError', async (_platform, createAdapter) => {
    const told: unknown[] = [];
    const guard = createGuard(createServers(issuer).usual, {
      realm: () => 'tenant',
      errorBody: ({ error }) => ({ contentType: 'application/problem+json', body: JSON.stringify({ own: error }) }),
      onRefused: (error) => {
        told.push(error);
        throw new Error('of the log');
      },
    });
    const { origin, close } = await listenNest(FormsRoot, createAdapter(), (app) => app.useGlobalGuards(guard));
    try {
      const call = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
        const response = await fetch(`${origin}/${path}`, { headers });
        return [response.status, await response.json(), response.headers.get('www-authenticate')];
      };
      const good = issuer.headers({ sub: 'alice', scope: 'read:messages' });
      expect(await call('optional')).toEqual([200, { reader: null }, null]);
      expect(await call('optional', good)).toEqual([200, { reader: 'alice' }, null]);
      expect(await call('optional', { authorization: `Bearer ${issuer.flawed('expired')}` })).toMatchObject([
        401,
        { own: 'invalid_token' },
        expect.stringContaining('realm="tenant"'),
      ]);
      const forbidden = [403, { own: 'insufficient_scope' }];
      expect(await call('forbids', good)).toEqual([
        ...forbidden,
        expect.stringMatching(/realm="tenant".*scope="read:messages admin"/),
      ]);
      expect(await call('forbids-without')).toEqual([...forbidden, expect.stringMatching(/realm="tenant".*"admin"/)]);
      const reasons = ['expired', 'insufficient_scope', 'insufficient_scope'];
      expect(told.map((error) => error instanceof AccessError && error.reason)).toEqual(reasons);
    } finally {
      await close();
    }
  });
});

describe('the module', () => {
  class Notes {
    undeclared(access: Access) {
      return { reader: access.claims.sub };
    }
    open() {
      return { reader: null };
    }
    scoped(access: Access) {
      return { reader: access.claims.sub };
    }
    forbids(): never {
      throw new AccessError('insufficient_scope', { scopes: ['admin'] });
    }
  }
  decorate(Notes.prototype, 'undeclared', Get('undeclared'));
  CurrentAccess()(Notes.prototype, 'undeclared', 0);
  decorate(Notes.prototype, 'open', Get('open'), Open());
  decorate(Notes.prototype, 'scoped', Get('scoped'), Scopes('read:messages', 'other'));
  CurrentAccess()(Notes.prototype, 'scoped', 0);
  decorate(Notes.prototype, 'forbids', Get('forbids'));
  Controller()(Notes);

  const options = (more: Partial<ModuleOptions> = {}): ModuleOptions => ({
    resourceServer: createServers(issuer).usual,
    ...more,
  });

  /** Runs calls against an application with a module; a call resolves with status, body and challenge. */
  async function within(
    module: DynamicModule,
    test: (
      call: (path: string, claims?: Readonly<Record<string, unknown>>) => Promise<readonly unknown[]>,
    ) => Promise<void>,
    adapter: FastifyAdapter | undefined = undefined,
  ): Promise<void> {
    class NotesRoot {}
    Module({ imports: [module], controllers: [Notes] })(NotesRoot);
    const { origin, close } = await listenNest(NotesRoot, adapter);
    try {
      await test(async (path, claims) => {
        const headers = claims === undefined ? {} : issuer.headers(claims);
        const response = await fetch(`${origin}/${path}`, { headers });
        return [response.status, await response.json(), response.headers.get('www-authenticate')];
      });
    } finally {
      await close();
    }
  }
  const alice = { sub: 'alice', scope: 'read:messages other' };
  const admitted = [200, { reader: 'alice' }, null];
  const isRefused = (status: number, error: string) => [
    status,
    { detail: { error } },
    expect.stringMatching(/^Bearer/),
  ];

  it.each(platforms)('on %s: a route without a decorator requires any valid token', (_name, createAdapter) =>
    within(
      PortcullisModule.forRoot(options()),
      async (call) => {
        expect(await call('undeclared')).toMatchObject([401, {}, expect.stringMatching(/^Bearer/)]);
        expect(await call('undeclared', { sub: 'alice' })).toEqual(admitted);
        expect(await call('open')).toEqual([200, { reader: null }, null]);
        expect(await call('scoped', { sub: 'alice', scope: 'other' })).toMatchObject(
          isRefused(403, 'insufficient_scope'),
        );
        expect(await call('scoped', alice)).toEqual(admitted);
        expect(await call('forbids', alice)).toMatchObject(isRefused(403, 'insufficient_scope'));
      },
      createAdapter(),
    ),
  );

  it.each(platforms)(
    'on %s: a global filter of the application sends a refusal → challenge and nonce',
    async (_name, createAdapter) => {
      class Own implements ExceptionFilter<HttpException> {
        catch(error: HttpException, host: ArgumentsHost) {
          const { httpAdapter } = app.get(HttpAdapterHost);
          httpAdapter.reply(host.switchToHttp().getResponse(), { own: true }, error.getStatus());
        }
      }
      Catch(HttpException)(Own);
      class NotesRoot {}
      Module({
        imports: [PortcullisModule.forRoot({ resourceServer: createServers(issuer).withNonces })],
        controllers: [Notes],
      })(NotesRoot);
      const adapter = createAdapter();
      const app = await (adapter === undefined
        ? NestFactory.create(NotesRoot, { logger: false })
        : NestFactory.create(NotesRoot, adapter, { logger: false }));
      app.useGlobalFilters(new Own());
      await app.listen(0, '127.0.0.1');
      try {
        const url = `${await app.getUrl()}/undeclared`;
        const response = await fetch(url, { headers: issuer.dpopClient().headers({ method: 'GET', url }) });
        expect([response.status, await response.json()]).toEqual([401, { own: true }]);
        expect(response.headers.get('content-type')).toMatch(/^application\/json/);
        expect(response.headers.get('www-authenticate')).toContain('error="use_dpop_nonce"');
        expect(response.headers.get('dpop-nonce')).not.toBeNull();
      } finally {
        await app.close();
      }
    },
  );

  it('a request that the application has responded to is refused → its response remains', async () => {
    class NotesRoot {}
    Module({ imports: [PortcullisModule.forRoot(options())], controllers: [Notes] })(NotesRoot);
    const app = await NestFactory.create(NotesRoot, { logger: false });
    app.use((_request: IncomingMessage, response: ServerResponse, next: () => void) => {
      response.writeHead(503).end('late');
      next();
    });
    await app.listen(0, '127.0.0.1');
    try {
      const response = await fetch(`${await app.getUrl()}/undeclared`);
      expect([response.status, await response.text()]).toEqual([503, 'late']);
    } finally {
      await app.close();
    }
  });

  it('defaultPolicy → the policy of a route without a decorator, and of no other', () =>
    within(PortcullisModule.forRoot(options({ defaultPolicy: { scopes: ['admin'] } })), async (call) => {
      expect(await call('undeclared', alice)).toMatchObject(isRefused(403, 'insufficient_scope'));
      expect(await call('undeclared', { ...alice, scope: 'admin' })).toEqual(admitted);
      expect(await call('scoped', alice)).toEqual(admitted);
      expect((await call('open'))[0]).toBe(200);
    }));

  it('forRootAsync: the factory gets its dependencies, and the shutdown closes its server', async () => {
    class Settings {
      readonly realm = 'tenant';
    }
    class SettingsModule {}
    Module({ providers: [Settings], exports: [Settings] })(SettingsModule);
    const { usual: resourceServer } = createServers(issuer);
    const close = vi.spyOn(resourceServer, 'close');
    const module = PortcullisModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: async ({ realm }: Settings) => ({ resourceServer, realm: () => realm }),
    });
    await within(module, async (call) => {
      expect(await call('undeclared')).toMatchObject([401, {}, expect.stringContaining('realm="tenant"')]);
      expect(await call('undeclared', alice)).toEqual(admitted);
      expect(close).not.toHaveBeenCalled();
    });
    expect(close).toHaveBeenCalledOnce();
  });

  it('forRoot: the shutdown leaves the server to its owner', async () => {
    const shared = options();
    const close = vi.spyOn(shared.resourceServer, 'close');
    for (let round = 0; round < 2; round++) {
      await within(PortcullisModule.forRoot(shared), async (call) => {
        expect(await call('undeclared', alice)).toEqual(admitted);
      });
    }
    expect(close).not.toHaveBeenCalled();
  });

  it('PortcullisGuard in another module → the guard of the module, without the global one', async () => {
    class Other {
      read() {
        return { reader: 'other' };
      }
    }
    decorate(Other.prototype, 'read', Get('other'));
    UseGuards(PortcullisGuard)(Other);
    Controller()(Other);
    class OtherModule {}
    Module({ controllers: [Other] })(OtherModule);
    const described = PortcullisModule.forRoot(options());
    const withoutGlobal = {
      ...described,
      imports: [OtherModule],
      providers: described.providers?.filter((each) => !('useExisting' in each)) ?? [],
    };
    await within(withoutGlobal, async (call) => {
      expect((await call('other'))[0]).toBe(401);
      expect(await call('other', alice)).toEqual([200, { reader: 'other' }, null]);
    });
  });

  it.each([
    ['a misspelled option', () => ({ ...options(), onRefuse: () => undefined }), /there is no onRefuse/],
    ['no server', () => ({}), /^createGuard: hand over what createResourceServer returned$/],
    ['an invalid policy', () => options({ defaultPolicy: { scopes: [] } }), /^policy: scopes must be a list/],
  ])('%s → the application does not start', async (_name, create, message) => {
    const module = PortcullisModule.forRoot(create() as ModuleOptions);
    const started = NestFactory.create(module, { logger: false, abortOnError: false });
    await expect(started).rejects.toThrow(message);
  });

  it('a misspelled option of forRootAsync → TypeError', () => {
    const odd = { useFactory: () => options(), injects: [] };
    expect(() => PortcullisModule.forRootAsync(odd)).toThrow(/there is no injects; .*Did you mean inject\?$/);
  });
});

describe('contexts', () => {
  const guard = createGuard(createServers(issuer).usual);
  const good = issuer.headers({ sub: 'alice', scope: 'read:messages' });
  const [filter] = Reflect.getMetadata('__exceptionFilters__', Routes.prototype.strict) as [ExceptionFilter]; // one

  /** A request as node:http has it. */
  const incoming = (headers: Readonly<Record<string, string>> = {}): IncomingMessage => {
    const lines = Object.entries({ host: 'api.test', ...headers }).flat();
    return Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/messages', rawHeaders: lines });
  };
  const contextOf = (type: string, args: readonly unknown[], handler: keyof Routes = 'strict') => {
    const context = new ExecutionContextHost([...args], Routes, Routes.prototype[handler]);
    context.setType(type);
    return context;
  };

  it.each([
    ['graphql', [{}, {}, { req: incoming(good) }, {}]],
    ['ws', [{ request: incoming(good), handshake: {} }, 'message']],
    ['rpc', [{}, {}]],
  ] as const)('%s, an open route too → TypeError that names the recipe, no access', async (type, args) => {
    for (const handler of ['strict', 'open', 'undeclared'] as const) {
      const context = contextOf(type, args, handler);
      await expect(guard.canActivate(context)).rejects.toThrow(/^createGuard: it guards HTTP routes only; .*nest\.md/);
      expect(findAccess(context)).toBeUndefined();
    }
  });

  it('HTTP of another platform → TypeError, no access', async () => {
    const context = contextOf('http', [{ raw: {} }, {}]);
    await expect(guard.canActivate(context)).rejects.toThrow(/^createGuard: mount it on @nestjs\/platform-express/);
  });

  it('an AccessError without the guard → passed on to the application', () => {
    const error = new AccessError('insufficient_scope');
    expect(() => filter.catch(error, contextOf('http', [incoming(good), {}]))).toThrow(error);
  });

  it('accessOf of a context and of its request → the access', async () => {
    const request = incoming(good);
    const context = contextOf('http', [request, new ServerResponse(request)]);
    expect([findAccess(request), findAccess(context)]).toEqual([undefined, undefined]);
    expect(() => accessOf(context)).toThrow(/^No guard has validated/);
    await guard.canActivate(context);
    expect(accessOf(request).claims.sub).toBe('alice');
    expect(accessOf(context).claims.sub).toBe('alice');
  });
});
