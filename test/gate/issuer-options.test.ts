import { createServer } from 'node:http';
import { get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GateProcess, startGate } from '../support/gate-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';

let provider: TestProvider;
let gate: GateProcess;
let keyServer: ReturnType<typeof createServer>;

beforeAll(async () => {
  provider = await startTestProvider();
  const { issuer, audience, jwksUri } = provider;
  // The keys of the provider again, over plain http, for an issuer of another name.
  const published = await new Promise<string>((resolve, reject) => {
    get(jwksUri, { ca: provider.ca, family: 4 }, (response) => resolve(text(response))).on('error', reject);
  });
  keyServer = createServer((_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(published);
  });
  await new Promise<void>((resolve) => keyServer.listen(0, '127.0.0.1', resolve));
  const { port } = keyServer.address() as AddressInfo; // it listens on TCP
  const issuers = {
    scp: { issuer, audience, scopeClaim: 'scp', permissionsClaim: ['realm_access', 'roles'] },
    clients: { issuer, clientIds: ['shop'], audience },
    placed: { issuer: 'https://elsewhere.example/', audience, jwksUri },
    plain: { issuer: 'http://plain.example/', audience, jwksUri: `http://127.0.0.1:${port}/keys`, insecure: true },
  };
  const rules = [
    { id: 'scp', path: '/scp', issuers: ['scp'], scopes: ['read'] },
    { id: 'roles', path: '/roles', issuers: ['scp'], permissions: ['admin'] },
    { id: 'clients', path: '/clients', issuers: ['clients'] },
    { id: 'placed', path: '/placed', issuers: ['placed'] },
    { id: 'plain', path: '/plain', issuers: ['plain'] },
    { id: 'audience', path: '/audience', issuers: ['scp'], audience: 'special' },
  ];
  gate = await startGate(provider, { issuers, rules });
});
afterAll(async () => {
  await gate?.stop();
  keyServer?.close();
  await provider?.close();
});

const ask = async (path: string, claims: object) =>
  (await gate.ask({ path, headers: ['Authorization', `Bearer ${await provider.sign({ ...claims })}`] })).status;

describe('options of issuers in rules', () => {
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

  it('keys at an address of their own, over https and by name over http', async () => {
    expect(await ask('/placed', { iss: 'https://elsewhere.example/' })).toBe(200);
    expect(await ask('/placed', {})).toBe(401);
    expect(await ask('/plain', { iss: 'http://plain.example/' })).toBe(200);
  });

  it('an audience that only one rule asks for', async () => {
    expect(await ask('/audience', { aud: [provider.audience, 'special'] })).toBe(200);
    expect(await ask('/audience', {})).toBe(401);
  });
});
