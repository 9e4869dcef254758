import { createServer } from 'node:http';
import { get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { useTestProvider } from '../support/test-provider.ts';

let fetches = 0;
const provider = await useTestProvider();
const { issuer, audience, jwksUri } = provider;
// The keys of the provider again, over plain http, for an issuer of another name.
const published = await new Promise<string>((resolve, reject) => {
  get(jwksUri, { ca: provider.ca, family: 4 }, (response) => resolve(text(response))).on('error', reject);
});
const keyServer = createServer((incoming, outgoing) => {
  if (incoming.url !== '/keys') {
    outgoing.writeHead(500).end();
    return;
  }
  fetches++;
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end(published);
});
await new Promise<void>((resolve) => keyServer.listen(0, '127.0.0.1', resolve));
const { port } = keyServer.address() as AddressInfo; // it listens on TCP
const issuers = {
  scp: { issuer, audience, scopeClaim: 'scp', permissionsClaim: ['realm_access', 'roles'] },
  clients: { issuer, clientIds: ['shop'], audience },
  cid: {
    ...{
      issuer,
      audience,
      clientIds: ['shop'],
      clientIdClaim: 'cid',
      permissionsClaim: [['rights'], ['a', 'roles']],
    },
  },
  literal: { issuer, audience: 'unchecked' },
  placed: { issuer: 'https://elsewhere.example/', audience, jwksUri },
  plain: { issuer: 'http://plain.example/', audience, jwksUri: `http://127.0.0.1:${port}/keys`, insecure: true },
  away: { issuer: 'https://away.example/', audience, jwksUri: `http://127.0.0.1:${port}/away`, insecure: true },
};
const rules = [
  { id: 'scp', path: '/scp', issuers: ['scp'], scopes: ['read'] },
  { id: 'roles', path: '/roles', issuers: ['scp'], permissions: ['admin'] },
  { id: 'clients', path: '/clients', issuers: ['clients'] },
  { id: 'cid', path: '/cid', issuers: ['cid'], permissions: ['admin', 'reader'] },
  { id: 'literal', path: '/literal', issuers: ['literal'] },
  { id: 'placed', path: '/placed', issuers: ['placed'] },
  { id: 'plain', path: '/plain', issuers: ['plain'] },
  { id: 'away', path: '/away', issuers: ['away'] },
  { id: 'audience', path: '/audience', issuers: ['scp'], audience: 'special' },
];
afterAll(() => keyServer.close());
const gate = await useGate(provider, { issuers, rules });
// On a busy machine the first fetch may take long.
for (const each of [issuer, 'https://elsewhere.example/', 'http://plain.example/']) {
  await gate.findLog(({ event, issuer: of }) => event === 'keys_fetched' && of === each);
}

const ask = async (path: string, claims: object) =>
  (await gate.ask({ path, headers: ['Authorization', `Bearer ${await provider.sign({ ...claims })}`] })).status;

describe('options of issuers in rules', () => {
  it('clientIdClaim, and permissions of two claims', async () => {
    const permitted = { rights: ['admin'], a: { roles: ['reader'] } };
    expect(await ask('/cid', { cid: 'shop', ...permitted })).toBe(200);
    expect(await ask('/cid', { cid: 'shop', rights: ['admin'] })).toBe(403);
    expect(await ask('/cid', { client_id: 'shop', ...permitted })).toBe(401);
  });

  it('audience unchecked → is compared with aud', async () => {
    expect(await ask('/literal', { aud: undefined, client_id: undefined })).toBe(401);
    expect(await ask('/literal', { aud: 'unchecked' })).toBe(200);
  });

  it('scopes and permissions of other claims', async () => {
    expect(await ask('/scp', { scp: ['read'] })).toBe(200);
    expect(await ask('/scp', { scp: ['other'], scope: 'read' })).toBe(403);
    expect(await ask('/roles', { realm_access: { roles: ['admin'] } })).toBe(200);
    expect(await ask('/roles', { permissions: ['admin'] })).toBe(403);
  });

  it('clients that are named', async () => {
    expect(await ask('/clients', { client_id: 'shop' })).toBe(200);
    expect(await ask('/clients', { client_id: 'other' })).toBe(401);
  });

  it('jwksUri over https, and insecure over http → used', async () => {
    expect(await ask('/placed', { iss: 'https://elsewhere.example/' })).toBe(200);
    expect(await ask('/placed', {})).toBe(401);
    expect(await ask('/plain', { iss: 'http://plain.example/' })).toBe(200);
  });

  it('jwksUri → one process fetches the keys, and they are counted', async () => {
    const token = await provider.sign({ iss: 'http://plain.example/' });
    const headers = ['Authorization', `Bearer ${token}`];
    const answers = await Promise.all(Array.from({ length: 12 }, () => gate.ask({ path: '/plain', headers })));
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
    expect(fetches).toBe(1);
    await gate.findLog(({ event, issuer }) => event === 'keys_fetch_failed' && issuer === 'https://away.example/');
    const metrics = await gate.metrics();
    expect(metrics).toContain('portcullis_key_set_usable{issuer="http://plain.example/"} 1\n');
    expect(metrics).toContain('portcullis_key_set_usable{issuer="https://elsewhere.example/"} 1\n');
    expect(metrics).toContain('portcullis_key_set_usable{issuer="https://away.example/"} 0\n');
    const readiness = await send(gate.adminUrl ?? '', '/readyz');
    expect(readiness.json).toMatchObject({
      ready: true,
      checks: { 'keys of http://plain.example/': 'ok', 'keys of https://elsewhere.example/': 'ok' },
      degraded: ['keys of https://away.example/'],
    });
    const warned = gate.logs.filter(({ event }) => event === 'keys_insecure').map(({ issuer }) => issuer);
    expect(warned.sort()).toEqual(['http://plain.example/', 'https://away.example/']);
  });

  it('an audience that only one rule requires → checked for it only', async () => {
    expect(await ask('/audience', { aud: [provider.audience, 'special'] })).toBe(200);
    expect(await ask('/audience', {})).toBe(401);
  });
});
