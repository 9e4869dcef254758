import { Controller, type ExecutionContext, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CurrentAccess, createGuard, Open, Protect } from '../../src/adapters/nest.ts';
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

it('what is no request of node:http → TypeError, and nobody is let in', () => {
  const context = {
    getHandler: () => Routes.prototype.strict,
    getClass: () => Routes,
    switchToHttp: () => ({ getRequest: () => ({ raw: {} }) }),
  } as unknown as ExecutionContext; // of another platform
  expect(() => createGuard(createServers(issuer).usual).canActivate(context)).toThrow(/platform-express$/);
});
