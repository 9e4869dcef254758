import { beforeAll, expect, it } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { type Editor, openEditor } from '../support/language-server.ts';

const scene = `
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { createResourceServer } from 'portcullis';
import * as inExpress from 'portcullis/express';
import * as inFastify from 'portcullis/fastify';
import * as inHono from 'portcullis/hono';
import { createProtect } from 'portcullis/fetch';
const server = createResourceServer({ issuer: 'https://idp.example/', audience: 'api' });
const protect = createProtect(server);
`;
const authorizeOf = (name: string) => `const authorize = in${name}.createAuthorize(server);`;
const members = ['acr', 'actor', 'anyScope', 'audience', 'claims', 'implies', 'maxAge', 'permissions', 'scopes'];

type Row = readonly [name: string, code: string, fix?: string];

const completions: readonly Row[] = [
  ['Express', `${authorizeOf('Express')} authorize({ | });`],
  ['Fastify', `${authorizeOf('Fastify')} authorize.optional({ | });`],
  ['Hono', `${authorizeOf('Hono')} authorize({ | });`],
  ['fetch', 'protect({ | }, () => new Response());'],
  ['authorize', `server.authorize(new Request('https://api.example/'), { | });`],
];

const call = 'call it: authorize()';
const oneOfTwo = 'write issuer, or issuers with a list: one of the two';
const mistakes: readonly Row[] = [
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
  ['none', `${authorizeOf('Express')} express().use(authorize()).get('/', authorize({ scopes: ['a'] }));`],
];

/** One module for all rows, each in its scope and on its line: the compiler checks a module of its own for as long as all of them. */
const compose = (rows: readonly Row[]): string => scene + rows.map(([, code]) => `{ ${code} }`).join('\n');

const folder = useFolder();
let offered: readonly (readonly string[])[];
let errors: Awaited<ReturnType<Editor['check']>>;
beforeAll(async () => {
  const editor = await openEditor(folder);
  offered = await editor.complete(compose(completions));
  errors = await editor.check(compose(mistakes));
  await editor.close();
});

it.each(completions.map(([name], row) => [name, row] as const))(
  'completion in a policy: %s → only members that users write',
  (_name, row) => expect(offered[row]?.map((label) => label.replace('?', '')).toSorted()).toEqual(members),
);

it.each(mistakes.map(([name, , fix], row) => [name, fix, row] as const))(
  'mistake: %s → an error of the compiler that has the fix',
  (_name, fix, row) => {
    const line = scene.split('\n').length - 1 + row;
    const messages = errors.filter((error) => error.line === line).map(({ message }) => message);
    const found = messages.filter((message) => !/never (read|used)|unused/.test(message));
    if (fix === undefined) expect(found).toEqual([]);
    else expect(found.join('\n')).toContain(fix);
  },
);
