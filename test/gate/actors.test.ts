import { createHmac, generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createAssertionVerifier } from '../../src/core/assertion/assertion-verifier.ts';
import { useFolder } from '../support/folder.ts';
import { lastHeaders, useUpstream } from '../support/gate-edge.ts';
import { openGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { useTestProvider } from '../support/test-provider.ts';

const folder = useFolder();
const secret = 'a secret of at least 32 bytes, yes';
const trusted = { issuer: 'https://gate.example/', audience: 'https://orders.internal/' };
const keyFile = join(folder, 'signing.pem');
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
const provider = await useTestProvider();
const upstream = await useUpstream();

/** Starts a gate whose rules differ in `actor`, and its audit trail. */
async function openActors(identity: 'plain' | 'hashed' | 'off') {
  const auditFile = join(folder, `${identity}.jsonl`);
  const rules = {
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    identity: { 'X-Auth-Subject': 'sub', 'X-Auth-Actor': ['act', 'sub'] },
    assertion: { ...trusted, header: 'X-Auth-Assertion' },
    rules: [
      { id: 'any', path: '/any' },
      { id: 'people', path: '/people', actor: 'forbidden' },
      { id: 'agents', path: '/agents', actor: 'required' },
      { id: 'one', path: '/one', actor: [{ sub: 'agent-1' }] },
      { id: 'partner', path: '/partner', actor: [{ iss: 'https://partner.example/', sub: 'agent-1' }] },
    ],
  };
  const gate = await openGate(provider, rules, {
    ...{ UPSTREAM: `http://${upstream.address}`, ASSERTION_KEY: keyFile, AUDIT_LOG: auditFile, LOG_IDENTITY: identity },
    ...{ LOG_IDENTITY_SECRET: secret, LOG_GRANTS: 'all' },
  });
  const call = async (path: string, claims: object) => {
    const headers = ['Authorization', `Bearer ${await provider.sign({ sub: 'alice', ...claims })}`];
    upstream.received.length = 0;
    const answer = await send(gate.url, path, { headers });
    const id = answer.headers.get('x-request-id');
    const logged = await gate.findLog((line) => line['event'] === 'request' && line['id'] === id);
    const audited = readFileSync(auditFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    return { answer, logged, audited: audited.find((line) => line.id === id) };
  };
  return { gate, call };
}

const act = { sub: 'agent-1' };
const partner = { ...act, iss: 'https://partner.example/' };
const nest = (depth: number): object => (depth === 1 ? act : { sub: `agent-${depth}`, act: nest(depth - 1) });

describe('actor of a rule, with plain identities', async () => {
  const { gate, call } = await openActors('plain');
  afterAll(() => gate.stop());

  // Every form of an actor: test/core/policy/delegation.test.ts.
  it.each<readonly [string, string, object, number, string | undefined]>([
    ['forbidden, an actor', '/people', { act }, 403, 'actor_not_allowed'],
    ['required, no actor', '/agents', {}, 403, 'actor_required'],
    ['a list, a listed actor', '/one', { act }, 200, undefined],
    ['a list, in another case', '/one', { act: { sub: 'Agent-1' } }, 403, 'actor_not_allowed'],
    ['an issuer in the list', '/partner', { act: partner }, 200, undefined],
    ['actors that name each other', '/one', { act: { ...act, act: { sub: 'b', act } } }, 200, undefined],
    ['six actors', '/any', { act: nest(6) }, 401, 'malformed_actor'],
    ['a sub of 3,000 characters', '/one', { act: { sub: 'a'.repeat(3000) } }, 403, 'actor_not_allowed'],
  ])('%s → %4$i', async (_name, path, claims, status, reason) => {
    const { answer, audited } = await call(path, claims);
    expect(answer.status).toBe(status);
    expect(audited?.reason).toBe(reason);
    if (status === 403) {
      expect(answer.body).toContain('access_denied');
      expect(answer.headers.get('www-authenticate')).toBeUndefined();
    }
    if (status === 401) expect(answer.headers.get('www-authenticate')).toContain('invalid_token');
    // The upstream sees no refused request.
    expect(lastHeaders(upstream)['x-auth-subject']).toBe(status === 200 ? 'alice' : undefined);
  });

  it('an admitted actor → identity header, assertion, log and audit: the outermost, without other members', async () => {
    const inner = { sub: 'agent-2', act: { sub: 'agent-3' } };
    const claim = { ...act, client_id: 'bot', email: 'bot@example.com', act: inner };
    const { logged, audited } = await call('/one', { act: claim });
    expect(lastHeaders(upstream)['x-auth-actor']).toBe('agent-1');
    const keys = (await send(gate.url, '/.well-known/portcullis/jwks.json')).json;
    const verifier = createAssertionVerifier({ ...trusted, jwks: keys as never });
    // The upstream gets the chain: it may have its own rules about it.
    expect(await verifier.verify(String(lastHeaders(upstream)['x-auth-assertion']))).toMatchObject({
      sub: 'alice',
      act: claim,
    });
    expect(logged).toMatchObject({ sub: 'alice', actor: { sub: 'agent-1', client_id: 'bot' } });
    expect(audited).toMatchObject({ decision: 'admitted', rule: 'one', sub: 'alice' });
    expect(audited.actor).toEqual({ sub: 'agent-1', client_id: 'bot' });
    expect(JSON.stringify([logged, audited])).not.toMatch(/agent-2|agent-3|bot@/);
  });

  it('no actor → an empty header, also if the client sends one, and no member', async () => {
    const headers = ['Authorization', `Bearer ${await provider.sign()}`, 'X-Auth-Actor', 'agent-1'];
    expect((await send(gate.url, '/any', { headers })).status).toBe(200);
    expect(lastHeaders(upstream)['x-auth-actor']).toBe('');
    const { audited, logged } = await call('/any', {});
    expect([audited.actor, logged['actor']]).toEqual([undefined, undefined]);
  });

  it('a long actor → a value of the audit line is cut', async () => {
    const { audited } = await call('/any', { act: { sub: 'a'.repeat(3000) } });
    expect(audited.actor.sub).toBe('a'.repeat(256));
  });
});

it.each<readonly ['hashed' | 'off', object | undefined]>([
  ['hashed', { sub: createHmac('sha256', secret).update('agent-1').digest('base64url').slice(0, 22) }],
  ['off', undefined],
])('LOG_IDENTITY=%s → actor in log and audit: %j', async (identity, expected) => {
  const { gate, call } = await openActors(identity);
  const { logged, audited } = await call('/one', { act });
  expect([logged['actor'], audited.actor]).toEqual([expected, expected]);
  // The upstream decides about people, so it always gets the name.
  expect(lastHeaders(upstream)['x-auth-actor']).toBe('agent-1');
  await gate.stop();
  expect(JSON.stringify(gate.logs)).not.toContain('agent-1');
});
