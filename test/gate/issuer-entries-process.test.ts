import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { sendLogout } from '../support/logout.ts';
import { useTestProvider } from '../support/test-provider.ts';

const folder = useFolder();
const provider = await useTestProvider();
const entry = { issuer: provider.issuer, audience: provider.audience };
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
    ['plain', 'plain', provider.issuer, ['read']],
    ['scp', 'scp', provider.issuer, undefined],
    ['scp', 'scp', provider.issuer, ['read']],
    ['plain', 'plain', provider.issuer, undefined],
    ['scp', 'scp', provider.issuer, ['read']],
  ]);
});

it('an entry whose algorithms no key has → degraded, while the others are ready', async () => {
  const { json } = await send(gate.adminUrl ?? '', '/readyz');
  const check = `keys of ${provider.issuer}`;
  expect(json).toMatchObject({ ready: true, degraded: [check], checks: { [check]: expect.stringContaining('ES256') } });
});

it('a logout token that the keys of one of the entries verify → ends the session for all', async () => {
  const token = await provider.sign({ sid: 's1', scope: 'read', scp: ['read'] });
  expect([await ask('/plain', token), await ask('/scp', token)]).toEqual([200, 200]);
  expect(await sendLogout(provider, gate, 's1')).toBe(200);
  expect([await ask('/plain', token), await ask('/scp', token)]).toEqual([401, 401]);
});
