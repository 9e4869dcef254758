import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBentProxy } from './bent-proxy.ts';
import { closeWorkshop, openWorkshop, type Workshop } from './broken-set-ups.ts';
import { namesOf, runDoctor } from './run-doctor.ts';

let workshop: Workshop;
beforeAll(async () => {
  workshop = await openWorkshop();
});
afterAll(() => closeWorkshop(workshop));

const publish = (type: 'ed25519', alg: string) => ({
  keys: [{ ...generateKeyPairSync(type).publicKey.export({ format: 'jwk' }), kid: 'a', alg, use: 'sig' }],
});

async function writeRules(issuer: object, more: object = {}): Promise<Readonly<Record<string, string>>> {
  const { folder, provider } = workshop;
  const RULES = join(folder, 'rules.json');
  const issuers = { main: { issuer: provider.issuer, audience: 'a', ...issuer } };
  await writeFile(RULES, JSON.stringify({ issuers, rules: [{ id: 'all', path: '/**' }], ...more }));
  return { RULES, NODE_EXTRA_CA_CERTS: provider.caFile };
}

/** The endpoint responds to the client with this. */
async function respond(document: object, status: number) {
  const { provider, folder } = workshop;
  provider.bend = { introspection: { document, status } };
  const clientSecretFile = join(folder, 'secret');
  await writeFile(clientSecretFile, 's3cret');
  return { endpoint: `${provider.issuer}introspect`, clientId: 'gate', clientSecretFile };
}

it('rules with their own algorithms, and a proxy with Date and Age of a cache → healthy', async () => {
  workshop.provider.bend = publish('ed25519', 'EdDSA');
  const environment = await writeRules({ algorithms: ['EdDSA'] });
  const { status, findings } = await runDoctor(['--only', 'provider,tls,clock,rules'], environment);
  expect([status, namesOf(findings)]).toEqual([0, []]);
});

it('rules with algorithms that no key has → no_usable_key, with the member of the rules as the fix', async () => {
  workshop.provider.bend = publish('ed25519', 'EdDSA');
  const { findings } = await runDoctor(['--only', 'provider'], await writeRules({ algorithms: ['ES256'] }));
  expect(namesOf(findings)).toEqual(['no_usable_key']);
  expect(findings[0]?.fix).toMatch(/^"algorithms": \["(?:EdDSA|Ed25519)"\] of "main" in /);
});

it.each([
  [{ active: false }, 200, []],
  [{ error: 'invalid_client' }, 401, ['introspection_failed']],
  [{}, 200, ['introspection_failed']],
])('introspection that responds with %j and %i → %j', async (document, status, expected) => {
  const introspection = await respond(document, status);
  const { findings } = await runDoctor(['--only', 'provider'], await writeRules({ introspection }));
  expect(namesOf(findings)).toEqual(expected);
});

it.each<readonly [object, number, RegExp | undefined]>([
  [{ error: 'invalid_grant' }, 400, undefined],
  [{ error: 'invalid_request' }, 400, undefined],
  [{ error: 'invalid_client' }, 401, /Correct "clientId"/],
  [{ error: 'unauthorized_client' }, 400, /Allow token exchange for this client/],
  [{ error: 'unsupported_grant_type' }, 400, /Allow token exchange for this client/],
  [{ error: 'invalid_target' }, 400, /Correct "audience"/],
  [{ error: 'invalid_scope' }, 403, /Correct "scopes"/],
  [{}, 404, /Compare the address/],
])('a token exchange that responds with %j and %i → accepted, or its fix', async (document, status, fix) => {
  const orders = { ...(await respond(document, status)), issuer: 'main', audience: 'o' };
  const { findings } = await runDoctor(['--only', 'provider'], await writeRules({}, { exchanges: { orders } }));
  expect(namesOf(findings)).toEqual(fix === undefined ? [] : ['exchange_failed']);
  const last = findings.at(-1);
  expect(last?.fix ?? last?.seen).toMatch(fix ?? /accepts the exchange orders/);
});

it('a token exchange whose secret is missing → exchange_failed', async () => {
  workshop.provider.bend = {};
  const orders = { issuer: 'main', clientId: 'gate', clientSecretFile: join(workshop.folder, 'none'), audience: 'o' };
  const { findings } = await runDoctor(['--only', 'provider'], await writeRules({}, { exchanges: { orders } }));
  expect(namesOf(findings)).toEqual(['exchange_failed']);
});

it.each<[string, object, Readonly<Record<string, string>>, readonly string[]]>([
  ['no logout', {}, {}, ['logout_not_sent', 'logout_without_session']],
  ['users only', { backchannel_logout_supported: true }, {}, ['logout_without_session']],
  ['users only', { backchannel_logout_supported: true }, { LOGOUT_SUBJECT: 'true' }, []],
  ['sessions', { backchannel_logout_supported: true, backchannel_logout_session_supported: true }, {}, []],
])('a provider with %s (%j), %j → %j', async (_, metadata, settings, expected) => {
  const { provider } = workshop;
  provider.bend = { metadata };
  const { status, findings } = await runDoctor(['--only', 'revocation'], {
    ...{ ISSUER: provider.issuer, IDP_AUDIENCE: 'a', NODE_EXTRA_CA_CERTS: provider.caFile, LOGOUT_CLIENTS: 'app' },
    ...settings,
  });
  expect([status, namesOf(findings)]).toEqual([0, expected]);
  if (expected.includes('logout_without_session')) expect(JSON.stringify(findings)).toContain('LOGOUT_SUBJECT');
});

it('a token without sid → logout_without_session; with sid → ok', async () => {
  const { provider, folder } = workshop;
  provider.bend = { metadata: { backchannel_logout_supported: true } };
  const environment = { ISSUER: provider.issuer, IDP_AUDIENCE: 'a', NODE_EXTRA_CA_CERTS: provider.caFile };
  const seen: unknown[] = [];
  for (const claims of [{}, { sid: 's' }]) {
    await writeFile(join(folder, 'token'), `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.y`);
    const args = ['--only', 'revocation', '--token-file', join(folder, 'token')];
    seen.push(namesOf((await runDoctor(args, { ...environment, LOGOUT_CLIENTS: 'app' })).findings));
  }
  expect(seen).toEqual([['logout_without_session'], []]);
});

it('a fix names ISSUER if that is set, not IDP_DOMAIN', async () => {
  const { provider } = workshop;
  provider.bend = { issuer: 'https://public.example/' };
  const environment = { ISSUER: provider.issuer, IDP_AUDIENCE: 'a', NODE_EXTRA_CA_CERTS: provider.caFile };
  const { findings } = await runDoctor(['--only', 'provider'], environment);
  expect(findings[0]?.fix).toMatch(/^ISSUER=https:\/\/public\.example\//);
});

it('a server that responds with an open page, 429 or 502 → its own problem', async () => {
  for (const [answerStatus, path, ...expected] of [
    [502, '/api', 1, 'url_unreachable'],
    [200, '/api', 1, 'url_open'],
    [200, '', 0, 'url_open'],
    [429, '/api', 0, 'url_limited'],
  ] as const) {
    const { url, close } = await startBentProxy('http://127.0.0.1:1', { answers: ['GET'], answerStatus });
    const { status, findings } = await runDoctor(['--only', 'url', '--from-outside', `${url}${path}`], {});
    await close();
    expect([status, ...namesOf(findings)]).toEqual(expected);
  }
});
