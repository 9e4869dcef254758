import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { listen, stop } from '../../tools/shared/network.js';
import { useFolder } from '../support/folder.ts';
import { useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { sendLogout } from '../support/logout.ts';
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

describe('two entries of one issuer', async () => {
  const folder = useFolder();
  const entry = { issuer, audience };
  const rule = (id: string) => ({ id, path: `/${id}`, issuers: [id], scopes: ['read'] });
  const rules = {
    // The last entry has none of the provider's keys.
    issuers: { plain: entry, scp: { ...entry, scopeClaim: 'scp' }, other: { ...entry, algorithms: ['ES256'] } },
    rules: [rule('plain'), rule('scp'), rule('other')],
  };
  const audit = { AUDIT_LOG: join(folder, 'audit.jsonl'), LOG_IDENTITY: 'plain' };
  const gate = await useGate(provider, rules, { ...audit, LOGOUT_CLIENTS: 'app' });
  await gate.findLog(({ event }) => event === 'keys_fetched');

  const now = () => Math.floor(Date.now() / 1000);
  const ask = async (path: string, token: string) =>
    (await gate.ask({ path, headers: ['Authorization', `Bearer ${token}`] })).status;
  const lines = (): readonly Record<string, unknown>[] =>
    readFileSync(join(folder, 'audit.jsonl'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));

  it('audit lines → the entry of the rule, and the scopes by its scopeClaim, admitted and refused', async () => {
    const token = await provider.sign({ scope: 'read', scp: [] });
    const other = await provider.sign({ scope: '', scp: ['read'] });
    const expired = await provider.sign({ scope: '', scp: ['read'], exp: now() - 600, iat: now() - 1200 });
    const statuses = [await ask('/plain', token), await ask('/scp', token), await ask('/scp', other)];
    expect([...statuses, await ask('/plain', other), await ask('/scp', expired)]).toEqual([200, 403, 200, 403, 401]);
    expect(lines().map(({ rule, entry, issuer, scopes }) => [rule, entry, issuer, scopes])).toEqual([
      ['plain', 'plain', issuer, ['read']],
      ['scp', 'scp', issuer, undefined],
      ['scp', 'scp', issuer, ['read']],
      ['plain', 'plain', issuer, undefined],
      ['scp', 'scp', issuer, ['read']],
    ]);
  });

  it('an entry whose algorithms no key has → degraded, while the others are ready', async () => {
    const { json } = await send(gate.adminUrl ?? '', '/readyz');
    const check = `keys of ${issuer}`;
    expect(json).toMatchObject({
      ready: true,
      degraded: [check],
      checks: { [check]: expect.stringContaining('ES256') },
    });
  });

  it('a logout token that the keys of one of the entries verify → ends the session for all', async () => {
    const token = await provider.sign({ sid: 's1', scope: 'read', scp: ['read'] });
    expect([await ask('/plain', token), await ask('/scp', token)]).toEqual([200, 200]);
    expect(await sendLogout(provider, gate, 's1')).toBe(200);
    expect([await ask('/plain', token), await ask('/scp', token)]).toEqual([401, 401]);
  });
});
