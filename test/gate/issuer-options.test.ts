import { createServer } from 'node:http';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import { afterAll, expect, it } from 'vitest';
import { listen, stop } from '../../tools/shared/network.js';
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
const port = await listen(keyServer);
afterAll(() => stop(keyServer));
const issuers = {
  own: { issuer, audience },
  placed: { issuer: 'https://elsewhere.example/', audience, jwksUri },
  plain: { issuer: 'http://plain.example/', audience, jwksUri: `http://127.0.0.1:${port}/keys`, insecure: true },
  away: { issuer: 'https://away.example/', audience, jwksUri: `http://127.0.0.1:${port}/away`, insecure: true },
};
const rules = [
  { id: 'placed', path: '/placed', issuers: ['placed'] },
  { id: 'plain', path: '/plain', issuers: ['plain'] },
  { id: 'away', path: '/away', issuers: ['away'] },
];
const gate = await useGate(provider, { issuers, rules });
// On a busy machine the first fetch may take long.
for (const each of [issuer, 'https://elsewhere.example/', 'http://plain.example/']) {
  await gate.findLog(({ event, issuer: of }) => event === 'keys_fetched' && of === each);
}

const ask = async (path: string, claims: object) =>
  (await gate.ask({ path, headers: ['Authorization', `Bearer ${await provider.sign({ ...claims })}`] })).status;

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
