import { createServer, type RequestListener } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { Controller, Get, Module } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as inExpress from '../../src/adapters/express.ts';
import * as inFastify from '../../src/adapters/fastify.ts';
import * as inFetch from '../../src/adapters/fetch.ts';
import * as inHono from '../../src/adapters/hono.ts';
import type { MetadataOptions } from '../../src/adapters/metadata.ts';
import * as inNest from '../../src/adapters/nest.ts';
import * as inNode from '../../src/adapters/node.ts';
import type { ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { send } from '../support/http-client.ts';
import { listen } from '../support/listening.ts';
import { decorate } from './decorate.ts';
import { issuer } from './issuer.ts';
import { listenNest } from './listen-nest.ts';
import { createServers } from './scene.ts';

const options: MetadataOptions = {
  resource: 'https://api.test/v1',
  authorizationServers: ['https://idp.test/'],
  scopesSupported: ['read:messages'],
  metadata: { resource_name: 'Messages' },
};
const path = '/.well-known/oauth-protected-resource/v1';
const link = `resource_metadata="https://api.test${path}"`;

interface Mounted {
  readonly origin: string;
  close(): Promise<unknown>;
}
const serve = (listener: RequestListener) => listen(createServer(listener));

function serveNest(server: ResourceServer, adapter?: FastifyAdapter): Promise<Mounted> {
  class Messages {
    read() {
      return {};
    }
  }
  decorate(Messages.prototype, 'read', Get('messages'), inNest.Protect({}));
  Controller()(Messages);
  class Root {}
  Module({ controllers: [Messages] })(Root);
  return listenNest(Root, adapter, (app) =>
    app.use(inNest.createMetadata(server, options)).useGlobalGuards(inNest.createGuard(server)),
  );
}

const mounts: Readonly<Record<string, (server: ResourceServer) => Promise<Mounted>>> = {
  express: (server) =>
    serve(
      express()
        .use(inExpress.createMetadata(server, options))
        .get('/messages', inExpress.createAuthorize(server)(), (_req, res) => {
          res.end();
        }),
    ),
  fastify: async (server) => {
    const app = fastify();
    app.register(inFastify.createMetadata(server, options));
    app.get('/messages', { onRequest: inFastify.createAuthorize(server)() }, async () => ({}));
    return { origin: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() };
  },
  hono: (server) => {
    const app = new Hono().use(inHono.createMetadata(server, options));
    app.get('/messages', inHono.createAuthorize(server)(), (c) => c.json({}));
    return listen(createAdaptorServer(app) as ReturnType<typeof createServer>); // HTTP/1 unless told otherwise
  },
  fetch: (server) => {
    const answerMetadata = inFetch.createMetadata(server, options);
    const messages = inFetch.createProtect(server)({}, () => new Response());
    const answer = (request: Request) => answerMetadata(request) ?? messages(request);
    return listen(createAdaptorServer({ fetch: answer }) as ReturnType<typeof createServer>);
  },
  node: (server) => {
    const metadata = inNode.createMetadata(server, options);
    const messages = inNode.createProtect(server)({}, (_request, response) => response.end());
    return serve((request, response) => metadata(request, response, () => messages(request, response)));
  },
  'nest on Express': (server) => serveNest(server),
  'nest on Fastify': (server) => serveNest(server, new FastifyAdapter()),
};

describe.each(Object.entries(mounts))('%s', (_name, mount) => {
  let mounted: Mounted;
  beforeAll(async () => {
    mounted = await mount(createServers(issuer).usual);
  });
  afterAll(() => mounted.close());

  it('any Host → challenges link to the metadata of the configured resource', async () => {
    const { status, headers } = await send(mounted.origin, '/messages', { headers: ['Host', 'evil.test'] });
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toContain(link);
    expect(headers.get('www-authenticate')).not.toContain('evil.test');
  });

  it.each([path, `${path}/`, `${path}?a=b`])('%s → the document', async (target) => {
    const { status, headers, json } = await send(mounted.origin, target);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(json).toEqual({
      resource: 'https://api.test/v1',
      authorization_servers: ['https://idp.test/'],
      scopes_supported: ['read:messages'],
      bearer_methods_supported: ['header'],
      resource_name: 'Messages',
    });
  });

  it.each([
    ['HEAD', 200],
    ['OPTIONS', 204],
    ['POST', 405],
  ])('%s → %i without a body', async (method, status) =>
    expect(await send(mounted.origin, path, { method })).toMatchObject({ status, body: '' }),
  );

  it('metadata of another resource → not found', async () => {
    const answer = await send(mounted.origin, '/.well-known/oauth-protected-resource/other');
    expect([401, 404]).toContain(answer.status);
  });
});

it('no createMetadata → no link in challenges', () => {
  const { describeRefusal } = createServers(issuer).usual;
  const refusal = describeRefusal(new Error('a defect'), new Request('https://api.test/'));
  expect(JSON.stringify(refusal.headers)).not.toContain('resource_metadata');
});

describe('invalid options → TypeError that names the fix', () => {
  it.each<[string, Partial<MetadataOptions>, RegExp]>([
    ['a resource that is no URL', { resource: '/v1' }, /^resource: write an absolute https URL/],
    ['a resource over http elsewhere', { resource: 'http://api.test/' }, /^resource: .*http only for localhost/],
    ['a resource with a query', { resource: 'https://api.test/?a' }, /^resource: write the URL without query/],
    ['a resource with a password', { resource: 'https://a:b@api.test/' }, /^resource: .*user information/],
    ['a resource with a space before it', { resource: ' https://api.test/' }, /^resource: .*white space/],
    ['scopes as a string', { scopesSupported: 'read' } as object, /^scopesSupported: write a list of scopes/],
    ['scopes that are null', { scopesSupported: null } as object, /^scopesSupported: write a list of scopes/],
    ['a scope that is a number', { scopesSupported: [5] } as object, /^scopesSupported: write a list of scopes/],
    ['members as a string', { metadata: 'abc' } as object, /^metadata: write an object/],
    ['members as a map', { metadata: new Map() } as object, /^metadata: write an object/],
    ['members as a promise', { metadata: Promise.resolve({}) } as object, /^metadata: write an object/],
    ['no authorization server', { authorizationServers: [] }, /^authorizationServers: name at least one issuer/],
    [
      'an issuer by domain',
      { authorizationServers: ['idp.test'] },
      /^authorizationServers: write an absolute https URL/,
    ],
    ['a member that is none', { scopes: ['a'] } as object, /^createMetadata: there is no scopes/],
  ])('%s', (_case, wrong, message) => {
    const server = createServers(issuer).usual;
    expect(() => inFetch.createMetadata(server, { ...options, ...wrong })).toThrow(message);
  });

  it('a second resource on one server → TypeError', () => {
    const server = createServers(issuer).usual;
    inFetch.createMetadata(server, options);
    expect(() => inHono.createMetadata(server, options)).not.toThrow();
    expect(() => inHono.createMetadata(server, { ...options, resource: 'https://api.test/v2' })).toThrow(
      /^createMetadata: this server links to other metadata/,
    );
  });
});
