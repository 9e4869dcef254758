import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Controller, type ExceptionFilter, Get, HttpException, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accessOf, CurrentAccess, createGuard, findAccess, Open, Protect } from '../../src/adapters/nest.ts';
import { AccessError } from '../../src/failures.ts';
import type { Access } from '../../src/resource-server/resource-server.ts';
import { decorate } from './decorate.ts';
import { issuer } from './issuer.ts';
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

describe('a guard for the whole application', () => {
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
    const response = await fetch(`${origin}/${path}`, {
      headers: claims === undefined ? {} : issuer.headers(claims),
    });
    return [response.status, await response.text()];
  };

  it('a route that says not who may call it lets nobody in, and the log says what to do', async () => {
    expect(await call('undeclared', { scope: 'read:messages' })).toEqual([
      500,
      '{"statusCode":500,"message":"Internal server error"}',
    ]);
    expect(errors.join()).toContain('createGuard: put @Protect(policy) or @Open() on Routes.undeclared');
  });

  it('an open route needs no token', async () => {
    expect(await call('open')).toEqual([200, 'open to all']);
  });

  it('an open route of a controller with a policy needs none either', async () => {
    expect(await call('open-within')).toEqual([200, 'open to all']);
  });

  it('an open route has no access to hand over', async () => {
    expect((await call('open-with-access', { scope: 'read:messages' }))[0]).toBe(500);
    expect(errors.join()).toContain('No guard has judged this request: put @Protect on the route');
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
  ])('%s with %j → %i', async (path, claims, status) => {
    expect((await call(path, claims))[0]).toBe(status);
  });
});

it('a policy whose guard was forgotten lets nobody in', async () => {
  const app = await NestFactory.create(Root, { logger: false });
  await app.listen(0, '127.0.0.1');
  try {
    for (const path of ['strict', 'as-its-controller', 'of-its-own']) {
      const response = await fetch(`${await app.getUrl()}/${path}`, {
        headers: issuer.headers({ scope: 'read:messages' }),
      });
      expect(response.status, path).toBe(500);
    }
  } finally {
    await app.close();
  }
});

describe('handlers of a route with a policy', () => {
  class Forms {
    optional(access: Access | undefined) {
      return { reader: access?.claims.sub ?? null };
    }
    forbids(): never {
      throw new AccessError('insufficient_scope', { scopes: ['admin'] });
    }
  }
  decorate(Forms.prototype, 'optional', Get('optional'), Protect.optional({ scopes }));
  CurrentAccess()(Forms.prototype, 'optional', 0);
  decorate(Forms.prototype, 'forbids', Get('forbids'), Protect({ scopes }));
  Controller()(Forms);
  class FormsRoot {}
  Module({ controllers: [Forms] })(FormsRoot);

  it.each([
    ['Express', (): undefined => undefined],
    ['Fastify', (): FastifyAdapter => new FastifyAdapter()],
  ] as const)('on %s: optional credentials, and an AccessError of their own', async (_platform, createAdapter) => {
    const adapter = createAdapter();
    const app = await (adapter === undefined
      ? NestFactory.create(FormsRoot, { logger: false })
      : NestFactory.create(FormsRoot, adapter, { logger: false }));
    app.useGlobalGuards(
      createGuard(createServers(issuer).usual, {
        onRefused: () => {
          throw new Error('of the log');
        },
      }),
    );
    await app.listen(0, '127.0.0.1');
    try {
      const call = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
        const response = await fetch(`${await app.getUrl()}/${path}`, { headers });
        return [response.status, await response.json(), response.headers.get('www-authenticate')];
      };
      const good = issuer.headers({ sub: 'alice', scope: 'read:messages' });
      expect(await call('optional')).toEqual([200, { reader: null }, null]);
      expect(await call('optional', good)).toEqual([200, { reader: 'alice' }, null]);
      expect(await call('optional', { authorization: `Bearer ${issuer.flawed('expired')}` })).toMatchObject([
        401,
        { detail: {} },
        expect.stringContaining('invalid_token'),
      ]);
      expect(await call('forbids', good)).toMatchObject([
        403,
        { detail: { error: 'insufficient_scope' } },
        expect.stringContaining('scope="read:messages admin"'),
      ]);
    } finally {
      await app.close();
    }
  });
});

describe('calls that are no HTTP routes', () => {
  const guard = createGuard(createServers(issuer).usual);
  const good = issuer.headers({ sub: 'alice', scope: 'read:messages' });

  /** A request as node:http has it. */
  const incoming = (headers: Readonly<Record<string, string>> = {}): IncomingMessage => {
    const lines = Object.entries({ host: 'api.test', ...headers }).flat();
    return Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/graphql', rawHeaders: lines });
  };
  const contextOf = (type: string, args: readonly unknown[], handler: keyof Routes = 'strict') => {
    const context = new ExecutionContextHost([...args], Routes, Routes.prototype[handler]);
    context.setType(type);
    return context;
  };
  type Place = (request: IncomingMessage) => readonly [type: string, args: readonly unknown[]];
  const places: readonly (readonly [string, Place])[] = [
    ['GraphQL on Apollo', (req) => ['graphql', [{}, {}, { req }, {}]]],
    ['GraphQL on Apollo and Fastify', (raw) => ['graphql', [{}, {}, { req: { raw, originalUrl: raw.url } }, {}]]],
    ['GraphQL on Mercurius', (raw) => ['graphql', [{}, {}, { reply: { request: { raw } } }, {}]]],
    ['a subscription of GraphQL', (request) => ['graphql', [{}, {}, { extra: { request } }, {}]]],
    ['a gateway on socket.io', (request) => ['ws', [{ request, handshake: {} }, 'message']]],
  ];

  it.each(places)('%s: a token with the scope is let in, and handlers find the access', async (_name, place) => {
    const context = contextOf(...place(incoming(good)));
    expect(await guard.canActivate(context)).toBe(true);
    expect(accessOf(context).claims.sub).toBe('alice');
  });

  it.each(places)('%s: without a token, and without the scope, nobody is let in', (_name, place) => {
    for (const headers of [{}, issuer.headers({ scope: 'other' })]) {
      const context = contextOf(...place(incoming(headers)));
      expect(() => guard.canActivate(context)).toThrow(HttpException);
      expect(findAccess(context)).toBeUndefined();
      expect(() => accessOf(context)).toThrow(/^No guard has judged/);
    }
  });

  /** What the filter of a route makes of a refusal. */
  const answer = (context: ExecutionContextHost): unknown => {
    const [filter] = Reflect.getMetadata('__exceptionFilters__', Routes.prototype.strict) as ExceptionFilter[];
    try {
      return guard.canActivate(context);
    } catch (error) {
      return filter?.catch(error, context);
    }
  };

  it('GraphQL: the refusal is an error with code, status and challenge', () => {
    const told = answer(contextOf('graphql', [{}, {}, { req: incoming() }, {}]));
    expect(told).toBeInstanceOf(Error);
    expect(told).toMatchObject({ extensions: { code: 'UNAUTHENTICATED', http: { status: 401 } } });
    const { headers } = (told as { extensions: { http: { headers: Map<string, string> } } }).extensions.http; // just seen
    expect(headers.get('www-authenticate')).toContain('scope="read:messages"');
  });

  it('a gateway: the refusal is an exception that is emitted, in the way of the library', () => {
    const told: unknown[] = [];
    const request = incoming();
    const emit = (...values: readonly unknown[]) => told.push(values);
    answer(contextOf('ws', [{ request, handshake: {}, emit }, 'message']));
    expect(told).toEqual([['exception', { status: 'error', message: 'Unauthorized' }]]);
    const sent: string[] = [];
    answer(contextOf('ws', [{ request, send: (text: string) => sent.push(text) }, 'message']));
    expect(sent.map((text) => JSON.parse(text))).toEqual([
      { event: 'exception', data: { status: 'error', message: 'Unauthorized' } },
    ]);
  });

  it('a gateway on ws: findRequest names the upgrade', async () => {
    const upgrades = new WeakMap<object, IncomingMessage>();
    const finding = createGuard(createServers(issuer).usual, {
      findRequest: (context) => upgrades.get(context.switchToWs().getClient()),
    });
    const socket = {};
    upgrades.set(socket, incoming(good));
    expect(await finding.canActivate(contextOf('ws', [socket, 'message']))).toBe(true);
    const unknown = contextOf('ws', [{}, 'message']);
    expect(() => finding.canActivate(unknown)).toThrow(/^createGuard: this call has no HTTP request that is known/);
  });

  it.each(['http', 'rpc'])('%s without a request of node:http → TypeError, and nobody is let in', (type) => {
    const context = contextOf(type, [{ raw: {} }, {}]);
    expect(() => guard.canActivate(context)).toThrow(/^createGuard: this call has no HTTP request that is known/);
  });
});
