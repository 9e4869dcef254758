import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Editor, openEditor } from '../support/language-server.ts';

const scene = `
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { createResourceServer } from '../../src/index.ts';
import * as inExpress from '../../src/adapters/express.ts';
import * as inFastify from '../../src/adapters/fastify.ts';
import * as inHono from '../../src/adapters/hono.ts';
import { createProtect } from '../../src/adapters/fetch.ts';
const server = createResourceServer({ issuer: 'https://idp.example/', audience: 'api' });
const protect = createProtect(server);
`;
const authorizeOf = (name: string) => `const authorize = in${name}.createAuthorize(server);`;
const members = ['acr', 'actor', 'anyScope', 'audience', 'claims', 'implies', 'maxAge', 'permissions', 'scopes'];

let editor: Editor;
beforeAll(async () => {
  editor = await openEditor();
});
afterAll(() => editor.close());

describe('completion in a policy → only members that users write', () => {
  it.each([
    ['Express', `${authorizeOf('Express')} authorize({ | });`],
    ['Fastify', `${authorizeOf('Fastify')} authorize.optional({ | });`],
    ['Hono', `${authorizeOf('Hono')} authorize({ | });`],
    ['fetch', 'protect({ | }, () => new Response());'],
    ['authorize', `server.authorize(new Request('https://api.example/'), { | });`],
  ])('%s', async (_name, code) => {
    const offered = await editor.complete(scene + code);
    expect(offered.map((label) => label.replace('?', '')).toSorted()).toEqual(members);
  });
});

describe('mistake → an error of the compiler that has the fix', () => {
  const call = 'call it: authorize()';
  const oneOfTwo = 'write issuer, or issuers with a list: one of the two';
  it.each([
    ['Express, application', `${authorizeOf('Express')} express().use(authorize);`, call],
    ['Express, path', `${authorizeOf('Express')} express().use('/a', authorize);`, call],
    ['Express, route', `${authorizeOf('Express')} express().get('/a', authorize, (_q, r) => { r.end(); });`, call],
    ['Express, optional', `${authorizeOf('Express')} express().use(authorize.optional);`, call],
    ['Fastify, hook', `${authorizeOf('Fastify')} fastify().addHook('onRequest', authorize);`, call],
    ['Fastify, route', `${authorizeOf('Fastify')} fastify().get('/', { onRequest: authorize }, () => 1);`, call],
    ['Hono, application', `${authorizeOf('Hono')} new Hono().use(authorize);`, call],
    ['Hono, path', `${authorizeOf('Hono')} new Hono().use('/a/*', authorize);`, call],
    ['Hono, route', `${authorizeOf('Hono')} new Hono().get('/a', authorize, (c) => c.text('a'));`, call],
    ['issuers, a list', `createResourceServer({ issuer: 'a', issuers: ['b'], audience: 'c' });`, oneOfTwo],
    ['issuers, find', `createResourceServer({ issuer: 'a', issuers: { find: () => 'b' }, audience: 'c' });`, oneOfTwo],
    ['combined by hand', `protect({ mode: 'all', policies: [] }, () => new Response());`, `'mode' does not exist`],
    ['misspelled', `protect({ scope: ['a'] }, () => new Response());`, `'scopes'`],
  ])('%s', async (_name, code, fix) => {
    const errors = (await editor.check(scene + code)).filter((message) => !/never (read|used)|unused/.test(message));
    expect(errors.join('\n')).toContain(fix);
  });

  it('none', async () => {
    const code = `${authorizeOf('Express')} express().use(authorize()).get('/', authorize({ scopes: ['a'] }));`;
    const errors = await editor.check(`${scene}${code}`);
    expect(errors.filter((message) => !/never (read|used)|unused/.test(message))).toEqual([]);
  });
});
