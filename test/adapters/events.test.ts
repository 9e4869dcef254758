import { createServer, type RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { Module } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import * as inExpress from '../../src/adapters/express.ts';
import * as inFastify from '../../src/adapters/fastify.ts';
import * as inFetch from '../../src/adapters/fetch.ts';
import * as inHono from '../../src/adapters/hono.ts';
import * as inNest from '../../src/adapters/nest.ts';
import * as inNode from '../../src/adapters/node.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createRevocations, readRevocations } from '../../src/core/revocation/revocations.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { until } from '../../tools/shared/network.js';
import { listen } from '../support/listening.ts';
import { eventTypes, startTransmitter } from '../support/transmitter.ts';
import { listenNest } from './listen-nest.ts';

const issuer = createTestIssuer();
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Adapter = {
  createBackchannelLogout: (server: ResourceServer, options: never) => unknown;
  createSignalsReceiver: (server: ResourceServer, options: never) => unknown;
};
/** Makes the receiver under test with the adapter of a framework. */
type Make = (adapter: Adapter) => never;

async function serve(listener: RequestListener): Promise<string> {
  const { origin, close } = await listen(createServer(listener));
  closers.push(close);
  return origin;
}

async function serveNest(make: Make, adapter?: FastifyAdapter): Promise<string> {
  class Root {}
  Module({})(Root);
  const { origin, close } = await listenNest(Root, adapter, (app) => app.use(make(inNest)));
  closers.push(close);
  return origin;
}

const frameworks: readonly (readonly [string, (make: Make) => Promise<string>])[] = [
  ['express', (make) => serve(express().use(make(inExpress)))],
  [
    'express after its parsers',
    (make) => serve(express().use(express.urlencoded(), express.text({ type: '*/*' }), make(inExpress))),
  ],
  ['express after a parser of bytes', (make) => serve(express().use(express.raw({ type: '*/*' }), make(inExpress)))],
  [
    'fastify',
    async (make) => {
      const app = fastify();
      app.register(make(inFastify));
      await app.ready();
      closers.push(() => app.close());
      return app.listen({ port: 0, host: '127.0.0.1' });
    },
  ],
  ['hono', (make) => serve(getRequestListener(new Hono().use(make(inHono)).fetch))],
  [
    'fetch',
    (make) => {
      const receive = make(inFetch) as (request: Request) => Promise<Response> | undefined;
      return serve(
        getRequestListener(async (request) => (await receive(request)) ?? new Response(null, { status: 404 })),
      );
    },
  ],
  [
    'node',
    (make) => {
      const receive = make(inNode) as ReturnType<typeof inNode.createBackchannelLogout>;
      return serve((request, response) => receive(request, response, () => response.writeHead(404).end()));
    },
  ],
  ['nest', (make) => serveNest(make)],
  ['nest on fastify', (make) => serveNest(make, new FastifyAdapter())],
];

function open() {
  const revocations = createRevocations();
  const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, revocations });
  const { check } = readRevocations('test', revocations);
  const now = Math.floor(Date.now() / 1000);
  const reason = () => check({ iss: issuer.issuer, sub: 'ann', sid: 's1', iat: now - 60, exp: now + 60 })?.reason;
  return { server, reason, now };
}

describe.each(frameworks)('%s', (_name, mount) => {
  it('logout token → 200, and the session is over; other paths and methods', async () => {
    const { server, reason, now } = open();
    const url = await mount(
      (adapter) => adapter.createBackchannelLogout(server, { clientIds: ['app'] } as never) as never,
    );
    const token = issuer.token(
      {
        aud: 'app',
        sid: 's1',
        iat: now,
        exp: now + 60,
        jti: 'l',
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      },
      { typ: 'logout+jwt' },
    );
    const post = (body: URLSearchParams | string, path = '/backchannel-logout') =>
      fetch(`${url}${path}`, { method: 'POST', body });
    expect((await post(new URLSearchParams({ logout_token: 'nonsense' }))).status).toBe(400);
    expect(reason()).toBeUndefined();
    const response = await post(new URLSearchParams({ logout_token: token }));
    expect([response.status, response.headers.get('cache-control'), await response.text()]).toEqual([
      200,
      'no-store',
      '',
    ]);
    expect(reason()).toBe('revoked_token');
    const got = await fetch(`${url}/backchannel-logout`);
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
    expect((await post(new URLSearchParams(), '/other')).status).toBe(404);
    expect((await post(new URLSearchParams({ logout_token: 'a'.repeat(20_000) }))).status).toBe(413);
  });

  it('security event → 202, and the user is out', async () => {
    const transmitter = await startTransmitter();
    closers.push(() => transmitter.stop());
    const { server, reason } = open();
    const stream = {
      transmitter: transmitter.url,
      issuer: issuer.issuer,
      audience: transmitter.stream.aud,
      authorization: 'Bearer p',
    };
    let receiver: { close?: () => void } = {};
    const url = await mount((adapter) => {
      receiver = adapter.createSignalsReceiver(server, {
        streams: { idp: stream },
        ca: transmitter.ca,
      } as never) as object;
      return receiver as never;
    });
    closers.push(() => receiver.close?.());
    await until(() => transmitter.requests.includes('GET /jwks'));
    const body = transmitter.event(transmitter.stream, eventTypes['account-disabled'], {
      format: 'iss_sub',
      iss: issuer.issuer,
      sub: 'ann',
    });
    const push = (path: string) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        body,
        headers: { authorization: 'Bearer p', 'content-type': 'application/secevent+jwt' },
      });
    expect((await push('/shared-signals/other')).status).toBe(404);
    expect((await push('/elsewhere')).status).toBe(404);
    await until(async () => (await push('/shared-signals/idp')).status === 202);
    expect(reason()).toBe('revoked_token');
  });
});

it('fetch: a request without a body → 400', async () => {
  const receive = inFetch.createBackchannelLogout(open().server, { clientIds: ['app'] });
  const response = await receive(
    new Request('https://api.test/backchannel-logout', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }),
  );
  expect(response?.status).toBe(400);
});

describe.each([
  ['fetch', (options: inFetch.WebLogoutOptions) => inFetch.createBackchannelLogout(open().server, options)],
  [
    'hono',
    (options: inFetch.WebLogoutOptions) => {
      const app = new Hono().use(inHono.createBackchannelLogout(open().server, options));
      return async (request: Request) => app.fetch(request);
    },
  ],
])('%s: 60 invalid logout tokens', (_name, create) => {
  const address = (request: Request) => request.headers.get('cf-connecting-ip') ?? undefined;
  const count = async (peer: inFetch.WebLogoutOptions['peer'], addresses: readonly string[]) => {
    const receive = create({ clientIds: ['app'], ...(peer !== undefined && { peer }) });
    const statuses: (number | undefined)[] = [];
    for (let i = 0; i < 60; i++) {
      const headers = { 'cf-connecting-ip': addresses[i % addresses.length] ?? '' };
      const request = new Request('https://api.test/backchannel-logout', {
        ...{ method: 'POST', headers, body: new URLSearchParams({ logout_token: 'a.b.c' }) },
      });
      statuses.push((await receive(request))?.status);
    }
    return statuses.filter((status) => status === 429).length;
  };

  it.each([
    ['of one peer', address, ['192.0.2.1'], 40],
    ['of one IPv6 network', address, ['2001:db8::1', '2001:db8::2'], 40],
    ['of three peers', address, ['192.0.2.1', '192.0.2.2', '192.0.2.3'], 0],
    ['of peers that are not named', undefined, ['192.0.2.1'], 0],
    [
      'with a function that throws',
      () => {
        throw new Error('no address');
      },
      ['192.0.2.1'],
      0,
    ],
  ])('%s → 429 for those after the 20th: %#', async (_title, peer, addresses, expected) =>
    expect(await count(peer, addresses)).toBe(expected),
  );

  it('a peer that is not a function → TypeError', () =>
    expect(() => create({ clientIds: ['app'], peer: '192.0.2.1' as never })).toThrow('peer'));
});
