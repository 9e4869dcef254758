import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createProxy } from 'node:http';
import { createServer } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import * as providers from '../../../src/providers/index.ts';
import type { ProviderPreset } from '../../../src/providers/provider-preset.ts';
import { useFolder } from '../../support/folder.ts';
import { listen } from '../../support/listening.ts';
import { pages, readCodeBlocks } from '../../support/pages.ts';
import { needs } from '../../support/programs.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';
import { createTestCertificates } from '../../support/tls.ts';
import { runDoctor } from './run-doctor.ts';

type Json = Readonly<Record<string, unknown>>;
type Settings = Readonly<Record<string, string>>;

const folder = useFolder();
const write = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const audience = 'https://api.example/';
const rulesOf = (issuers: Json): string => JSON.stringify({ issuers, rules: [{ id: 'all', path: '/**' }] });

const plain = { issuer: 'https://plain.example/', audience };
const twoEntries = JSON.stringify({
  issuers: { a: plain, b: { ...plain, audience: 'b' } },
  rules: ['a', 'b'].map((id) => ({ id, path: `/${id}/**`, issuers: [id] })),
});

/** Fills in the names in braces of a preset: each has its own host. */
const fill = (host: string, text: string): string =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => (name === 'tenant' ? '8a1b0c2d-0000-4000-8000-3e4f5a6b7c8d' : host));
const presets = Object.entries<unknown>(providers).filter(
  (entry): entry is [string, ProviderPreset] =>
    typeof entry[1] === 'object' && entry[1] !== null && 'rules' in entry[1],
);

const jwk = (kid: string, { publicKey }: { readonly publicKey: KeyObject }, more: Json = {}): Json =>
  Object.assign(publicKey.export({ format: 'jwk' }), { kid, use: 'sig' }, more);
const rsa = takeRsaKeys();
const ed = generateKeyPairSync('ed25519');
const curves = ['P-256', 'P-384'].map((namedCurve) => jwk(namedCurve, generateKeyPairSync('ec', { namedCurve })));
const allKeys = [jwk('r', rsa), jwk('d', ed), ...curves];
const longer = Buffer.concat([Buffer.alloc(1), Buffer.from(String(jwk('a', rsa)['n']), 'base64url')]);

/** Keys of the provider by the first part of its host; every other provider has all keys. */
const unusualKeys: Readonly<Record<string, readonly Json[]>> = {
  'same-kid': [jwk('a', rsa, { alg: 'RS512' }), jwk('a', rsa, { alg: 'RS256' })],
  'leading-zero': [jwk('a', rsa, { n: longer.toString('base64url') })],
  ed25519: [jwk('a', ed, { alg: 'Ed25519' })],
  eddsa: [jwk('a', ed, { alg: 'EdDSA' })],
  'with-encryption': [jwk('a', rsa), jwk('b', rsa, { use: 'enc' })],
};

const settingsOf = (host: string, more: Settings = {}): Settings => ({
  ...{ ISSUER: `https://${host}.example/`, IDP_AUDIENCE: audience },
  ...more,
});
const configMap = (path: string): Settings => parse(readFileSync(`deploy/kubernetes/${path}`, 'utf8')).data;
const base = configMap('base/configmap.yaml');
const ofGate = Object.entries({ ...base, ...configMap('gate/configmap.yaml') }).filter(([, value]) => value !== null);
// The names of its Redis and its folders are for containers.
const { REPLAY_STORE: _, ...compose } = parse(readFileSync('deploy/compose/compose.yaml', 'utf8')).services.gate
  .environment;
const blocks = pages
  .flatMap(readCodeBlocks)
  .filter(
    ({ language, text }) => /^(?:json|yaml)$/.test(language) && /"?issuers"?:/.test(text) && /"?rules"?:/.test(text),
  )
  .filter(({ text }) => !/File|^\s*#|\.\.\.|http:/m.test(text));

const deployments: readonly (readonly [title: string, settings: Settings])[] = [
  ['deploy/compose', { ...compose, RULES: 'deploy/compose/rules' }],
  ['deploy/kubernetes/base', base],
  ['deploy/kubernetes/gate', { ...Object.fromEntries(ofGate), RULES: 'deploy/kubernetes/gate/rules.yaml' }],
  ...presets.map(([name, { issuer, jwksUri, rules }]) => {
    const main = { ...rules, issuer, ...(jwksUri !== undefined && { jwksUri }), audience };
    return [`preset ${name}`, { RULES: write(`${name}.json`, fill(name.toLowerCase(), rulesOf({ main }))) }] as const;
  }),
  ...blocks.map(({ page, line, language, text }, index) => {
    const RULES = write(`block-${index}.${language}`, text);
    return [`rules of ${page}:${line}`, { RULES }] as const;
  }),
  ['two keys with one kid', settingsOf('same-kid')],
  ['a modulus with a leading zero octet', settingsOf('leading-zero')],
  ['a key for Ed25519 with ALGORITHMS=EdDSA', settingsOf('ed25519', { ALGORITHMS: 'EdDSA' })],
  ['a key for EdDSA with ALGORITHMS=Ed25519', settingsOf('eddsa', { ALGORITHMS: 'Ed25519' })],
  ['a key for encryption', settingsOf('with-encryption')],
  ['the address of the keys alone', settingsOf('silent', { JWKS_URI: 'https://silent.example/keys' })],
  ['no metadata, and keys at the usual address', settingsOf('no-metadata')],
  ['the gate without rules', settingsOf('plain', { UPSTREAM: 'http://127.0.0.1:3000' })],
  [
    'the gate for an MCP server',
    settingsOf('plain', { UPSTREAM: 'http://127.0.0.1:3000', MCP: 'true', IDP_AUDIENCE: 'https://mcp.example/mcp' }),
  ],
  [
    'an entry whose tokens need no subject',
    { RULES: write('subject.json', rulesOf({ main: { ...plain, subject: 'optional' } })) },
  ],
  ['two entries of one issuer', { RULES: write('two.json', twoEntries) }],
];

const issuers = deployments.flatMap(([, { RULES, ISSUER, IDP_DOMAIN }]): readonly string[] => {
  if (RULES === undefined) return [ISSUER ?? `https://${IDP_DOMAIN}/`];
  const file = RULES === 'deploy/compose/rules' ? `${RULES}/rules.yaml` : RULES;
  const { issuers } = parse(readFileSync(file, 'utf8')) as { readonly issuers: Json };
  return Object.values(issuers).map((entry) => String((entry as Json)['issuer'])); // the rules are valid
});
const certificates = await createTestCertificates(undefined, [
  ...new Set(issuers.map((issuer) => new URL(issuer).hostname)),
]);

/** Every provider at one address. The outbound proxy leads there from every host. */
const server = createServer({ cert: certificates.cert, key: certificates.key }, ({ headers, url = '' }, response) => {
  const [host = ''] = (headers.host ?? '').split('.');
  const send = (document: object): void =>
    void response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
  const named = issuers.find(
    (issuer) => `https://${headers.host}${url}` === `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
  );
  if (host === 'silent' ? url !== '/keys' : host === 'no-metadata' && !url.endsWith('jwks.json'))
    return void response.writeHead(404).end();
  send(
    named === undefined
      ? { keys: unusualKeys[host] ?? allKeys }
      : { issuer: named, jwks_uri: `https://${headers.host}/keys` },
  );
});
const { port, close } = await listen(server);
const proxy = createProxy().on('connect', (_, socket) => {
  const target = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
  target.on('error', () => socket.destroy()).on('close', () => socket.destroy());
  socket.on('error', () => target.destroy()).on('close', () => target.destroy());
  socket.pipe(target).pipe(socket);
});
const through = await listen(proxy);
const outbound = {
  HTTPS_PROXY: through.origin,
  NODE_EXTRA_CA_CERTS: write('ca.pem', certificates.ca),
};

afterAll(() => Promise.all([close(), through.close()]));

describe('doctor', () => {
  it('the examples are read: presets, and rules of the pages', () => {
    expect([presets.length > 15, blocks.length > 1]).toEqual([true, true]);
  });

  it.each(deployments)('%s → nothing fails', async (_title, settings) => {
    const { status, findings } = await runDoctor([], { ...outbound, ...settings });
    expect([status, findings.filter(({ level }) => level === 'fail' || level === 'unknown')]).toEqual([0, []]);
    expect(findings.filter(({ check, level }) => check === 'provider' && level === 'ok')).not.toEqual([]);
  });
});

/** Variables that a unit of systemd sets, with the folder of its state. */
const ofUnit = (name: string): Settings => {
  const lines = readFileSync(`deploy/systemd/${name}.service`, 'utf8').matchAll(/^Environment=(.*)$/gm);
  const pairs = [...lines].flatMap(([, line = '']) =>
    line.replaceAll('%S', folder).replaceAll('%i', '8001').split(' '),
  );
  return Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s)));
};
const overlay = parse(readFileSync('deploy/kubernetes/redis/deployment.yaml', 'utf8')).spec.template.spec.containers[0]
  .env as readonly { readonly name: string; readonly value: string }[];

describe('doctor, with the Redis of the deployment', needs('redis-server'), () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startTestRedis({ flags: ['--maxmemory-policy', 'noeviction'] });
  });
  afterAll(() => redis.stop());

  /** Files as the secrets of the deployment are mounted. */
  const mount = (name: string): string =>
    write(name.toLowerCase(), name.startsWith('REPLAY_STORE') ? redis.url : 's'.repeat(48));
  const secret = (): Settings => ({ DPOP_NONCE_SECRET_FILE: mount('DPOP_NONCE_SECRET_FILE') });

  it.each<[string, () => Settings]>([
    [
      'deploy/kubernetes/redis',
      () => ({ ...base, ...Object.fromEntries(overlay.map(({ name }) => [name, mount(name)])) }),
    ],
    ['deploy/systemd, portcullis.service', () => ({ ...settingsOf('plain'), ...ofUnit('portcullis'), ...secret() })],
    [
      'deploy/systemd, portcullis@8001.service',
      () => ({
        ...{ ...settingsOf('plain'), ...ofUnit('portcullis@'), ...secret() },
        ...{ REPLAY_STORE: redis.url, REVOCATION_STORE: redis.url, LOGOUT_CLIENTS: 'app', LOGOUT_SUBJECT: 'true' },
      }),
    ],
  ])('%s → nothing fails', async (title, createSettings) => {
    const { status, findings } = await runDoctor([], { ...outbound, ...createSettings() });
    expect([status, findings.filter(({ level }) => level === 'fail' || level === 'unknown')]).toEqual([0, []]);
    const isShared = !title.endsWith('portcullis.service');
    expect(findings.some(({ check, level }) => check === 'redis' && level === 'ok')).toBe(isShared);
  });
});
