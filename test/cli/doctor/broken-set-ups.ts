import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { calculateJwkThumbprint } from 'jose';
import type { Code } from '../../../src/cli/doctor/finding.ts';
import { findFreePort } from '../../../tools/shared/network.js';
import { passStart } from '../../support/pass-start.ts';
import { startTestRedis } from '../../support/redis.ts';
import { answerCheck, startImpostor } from '../../support/redis-store.ts';
import { startTestProvider } from '../../support/test-provider.ts';
import { createTestCertificates, type TestValidity } from '../../support/tls.ts';
import { findVariant, readEnvironment, startVariant } from '../../support/variant-service.ts';
import { type Bend, type BentProvider, startBentProvider } from './bent-provider.ts';
import { type ProxyBend, startBentProxy } from './bent-proxy.ts';

type Settings = Readonly<Record<string, string>>;

/** Flags and settings of one run of `doctor`. */
interface SetUp {
  readonly args?: readonly string[];
  readonly settings?: Settings;
}

/** Resources of a set-up. */
export interface Workshop {
  /** A provider without a defect, unless the set-up bends it. */
  readonly provider: BentProvider;
  readonly folder: string;
  /** Called after the run, the last one first. */
  readonly stops: (() => unknown)[];
}

/** A set-up that does not work: the only failure that `doctor` may find, and its fix. */
export interface BrokenSetUp {
  readonly title: string;
  readonly code: Code;
  readonly fix: RegExp;
  readonly prepare: (workshop: Workshop) => Promise<SetUp>;
  readonly program?: 'redis-server';
}

const origin = 'https://app.example';

export async function openWorkshop(): Promise<Workshop> {
  return {
    provider: await startBentProvider(),
    folder: await mkdtemp(join(tmpdir(), 'portcullis-broken-')),
    stops: [],
  };
}

export async function closeWorkshop({ provider, folder }: Workshop): Promise<void> {
  await provider.close();
  await rm(folder, { recursive: true });
}

async function write({ folder }: Workshop, name: string, content: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, content);
  return file;
}

async function listenOn({ stops }: Workshop, server: Server, port = 0, host = '127.0.0.1'): Promise<string> {
  await once(server.listen(port, host), 'listening');
  stops.push(() => server.close());
  return String((server.address() as AddressInfo).port); // it listens on TCP
}

/** The certificate of the service. */
const tls =
  (validity: TestValidity, more: (workshop: Workshop, cert: string) => Settings | Promise<Settings> = () => ({})) =>
  async (workshop: Workshop): Promise<SetUp> => {
    const { cert, key } = await createTestCertificates(validity);
    const files = { TLS_CERT: await write(workshop, 'cert.pem', cert), TLS_KEY: await write(workshop, 'key.pem', key) };
    return { settings: { ...files, ...(await more(workshop, cert)) } };
  };
const lasting = { from: -1, to: 60 };

const otherKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const rules =
  (content: string, settings: Settings = {}) =>
  async (workshop: Workshop): Promise<SetUp> => ({
    settings: { ...settings, RULES: await write(workshop, 'rules.json', content) },
  });
const open = (id: string, path: string): object => ({ id, path, access: 'open' });
const ruleText = (...list: readonly object[]): string => JSON.stringify({ issuers: {}, rules: list });

/** Two instances, with a bound token and its key for `doctor`. */
const instances =
  (...each: readonly Settings[]) =>
  async (workshop: Workshop): Promise<SetUp> => {
    const provider = await startTestProvider();
    workshop.stops.push(() => provider.close());
    const running = await Promise.all(each.map((more) => startVariant(findVariant('a'), provider, more)));
    workshop.stops.push(() => Promise.all(running.map((service) => service.stop())));
    await Promise.all(running.map((service) => service.findLog(({ event }) => event === 'keys_fetched')));
    await passStart();
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jkt = await calculateJwkThumbprint(publicKey.export({ format: 'jwk' }) as { readonly kty: string }); // an EC JWK
    const token = await write(workshop, 'token', `${await provider.sign({ cnf: { jkt } })}\n`);
    const key = await write(workshop, 'proof.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    return {
      args: [...running.flatMap(({ url }) => ['--peer', url]), '--token-file', token, '--dpop-key-file', key],
      settings: { ...readEnvironment(findVariant('a'), provider), ...each[0] },
    };
  };
const nonces = (secret: string): Settings => ({ DPOP_NONCE: 'required', DPOP_NONCE_SECRET: secret.repeat(32) });

/** A service behind a proxy. */
const proxied =
  (
    bend: ProxyBend | 'tls',
    { path = '', running = {}, settings = {} }: Readonly<Record<string, string | Settings>> = {},
  ) =>
  async (workshop: Workshop): Promise<SetUp> => {
    const provider = await startTestProvider();
    workshop.stops.push(() => provider.close());
    const more = { CORS_ORIGINS: origin, TRUST_PROXY: '127.0.0.1', ...(running as Settings) };
    const service = await startVariant(findVariant('a'), provider, more);
    workshop.stops.push(() => service.stop());
    const certificates = bend === 'tls' ? await createTestCertificates() : undefined;
    const elsewhere = { '/metrics': service.adminUrl ?? '' };
    const used = certificates !== undefined ? { tls: certificates } : (bend as ProxyBend);
    const proxy = await startBentProxy(service.url, 'elsewhere' in used ? { elsewhere } : used);
    workshop.stops.push(() => proxy.close());
    const both =
      certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: await write(workshop, 'both.pem', certificates.ca) };
    return {
      args: [
        '--from-outside',
        `${proxy.url}${path}`,
        ...(certificates === undefined ? [] : ['--only', 'outside,headers,cors,admin']),
      ],
      settings: {
        ...readEnvironment(findVariant('a'), provider),
        CORS_ORIGINS: origin,
        ...both,
        ...(settings as Settings),
      },
    };
  };

/** A Redis in this state. */
const redis =
  (...command: readonly string[]) =>
  async ({ stops }: Workshop): Promise<SetUp> => {
    const server = await startTestRedis();
    stops.push(() => server.stop());
    await server.command(...command);
    return { settings: { REPLAY_STORE: server.url } };
  };
const program = 'redis-server';

/** Deployments in which something around a healthy provider is wrong. */
export const brokenDeployments: readonly BrokenSetUp[] = [
  { title: 'own certificate expired', code: 'D220', fix: /Renew/i, prepare: tls({ from: -2, to: -1 }) },
  { title: 'own certificate not valid yet', code: 'D220', fix: /clock|Renew/i, prepare: tls({ from: 1, to: 2 }) },
  {
    title: 'key of another certificate',
    ...{ code: 'D221', fix: /TLS_KEY/ },
    prepare: tls(lasting, async (workshop) => ({ TLS_KEY: await write(workshop, 'other.key', otherKey()) })),
  },
  {
    title: 'own certificate missing',
    ...{ code: 'D222', fix: /TLS_CERT to a readable PEM file/ },
    prepare: tls(lasting, ({ folder }) => ({ TLS_CERT: join(folder, 'missing.pem') })),
  },
  {
    title: 'own certificate is not PEM',
    ...{ code: 'D222', fix: /TLS_CERT to a readable PEM file/ },
    prepare: tls(lasting, async (workshop) => ({ TLS_CERT: await write(workshop, 'broken.pem', 'not PEM') })),
  },
  {
    title: 'own certificate for another name',
    ...{ code: 'D223', fix: /Issue it for that name/ },
    prepare: tls(lasting, () => ({ EXTERNAL_URL: 'https://api.example' })),
  },
  { title: 'own certificate ends in 13 days', code: 'D224', fix: /Renew/i, prepare: tls({ from: -1, to: 13 }) },
  ...['PORT', 'ADMIN_PORT'].map(
    (name): BrokenSetUp => ({
      title: `${name} is taken`,
      ...{ code: 'D230', fix: new RegExp(`\\b${name}\\b`) },
      prepare: async (workshop) => ({
        settings: {
          [name]: await listenOn(
            workshop,
            createServer((_, response) => response.end()),
          ),
        },
      }),
    }),
  ),
  {
    title: 'HOST of another machine',
    ...{ code: 'D231', fix: /HOST/ },
    prepare: async () => ({ settings: { HOST: '192.0.2.1', PORT: String(await findFreePort()) } }),
  },
  {
    title: 'upstream down',
    ...{ code: 'D240', fix: /UPSTREAM|upstream/ },
    prepare: async (workshop) =>
      rules(ruleText(open('a', '/**')), { UPSTREAM: `http://127.0.0.1:${await findFreePort()}` })(workshop),
  },
  {
    title: 'folder of KEYS_CACHE missing',
    ...{ code: 'D250', fix: /install -d -m 700 .*missing/ },
    prepare: async ({ folder }) => ({ settings: { KEYS_CACHE: join(folder, 'missing/keys.json') } }),
  },
  {
    title: 'rules with an invalid path',
    code: 'D210',
    fix: /rules check/,
    prepare: rules(ruleText({ id: 'a', path: 'a' })),
  },
  { title: 'rules that are not JSON', code: 'D210', fix: /rules check/, prepare: rules('{ "rules": [') },
  {
    title: 'file of the rules missing',
    ...{ code: 'D210', fix: /RULES/ },
    prepare: async ({ folder }) => ({ settings: { RULES: join(folder, 'missing.json') } }),
  },
  {
    title: 'a rule that no request reaches',
    ...{ code: 'D211', fix: /Remove the rule/ },
    prepare: rules(ruleText(open('all', '/a/**'), open('one', '/a'), open('more', '/a/*/**'))),
  },
  {
    title: 'audiences of the instances differ',
    code: 'D142',
    fix: /same IDP_AUDIENCE/,
    prepare: instances({}, { IDP_AUDIENCE: 'urn:other' }),
  },
  {
    title: 'nonce secrets of the instances differ',
    code: 'D140',
    fix: /same DPOP_NONCE_SECRET/,
    prepare: instances(nonces('a'), nonces('b')),
  },
  {
    title: 'each instance has its own replay memory',
    code: 'D180',
    fix: /REPLAY_STORE=redis:/,
    prepare: instances({}, {}),
  },
  { title: 'the proxy ends TLS and is not trusted', code: 'D130', fix: /TRUST_PROXY=/, prepare: proxied('tls') },
  {
    title: 'the proxy replaces Host',
    code: 'D130',
    fix: /X-Forwarded-Host/,
    prepare: proxied({ sets: { host: 'internal.example' } }),
  },
  {
    title: 'the proxy strips a prefix',
    code: 'D134',
    fix: /EXTERNAL_URL=.*\/v1/,
    prepare: proxied({ prefix: '/v1' }, { path: '/v1/api/private' }),
  },
  {
    title: 'the proxy removes Authorization',
    code: 'D170',
    fix: /CGIPassAuth On/,
    prepare: proxied({ strips: ['authorization'] }),
  },
  { title: 'the proxy removes DPoP', code: 'D171', fix: /DPoP header/, prepare: proxied({ strips: ['dpop'] }) },
  { title: 'the proxy refuses OPTIONS', code: 'D161', fix: /pass OPTIONS/, prepare: proxied({ answers: ['OPTIONS'] }) },
  {
    title: 'the proxy responds to OPTIONS with 502',
    code: 'D162',
    fix: /pass OPTIONS to the address/,
    prepare: proxied({ answers: ['OPTIONS'], answerStatus: 502 }),
  },
  {
    title: 'the proxy leads /metrics to the admin listener',
    code: 'D190',
    fix: /remove the path from the proxy/,
    prepare: proxied({ elsewhere: {} }),
  },
  {
    title: 'no origin is allowed, for an API of browsers',
    ...{ code: 'D160', fix: /CORS_ORIGINS=/ },
    prepare: proxied({}, { running: { CORS_ORIGINS: '' }, settings: { CORS_ORIGINS: '' } }),
  },
  {
    title: 'nothing listens at the URL of the clients',
    ...{ code: 'D131', fix: /Start the service, or correct host and port/ },
    prepare: async () => ({ args: ['--from-outside', `http://127.0.0.1:${await findFreePort()}`] }),
  },
  {
    title: 'Redis behind sentinels is unreachable',
    ...{ code: 'D150', fix: /REPLAY_STORE/ },
    prepare: async () => ({ settings: { REPLAY_STORE: `redis+sentinel://127.0.0.1:${await findFreePort()}/gate` } }),
  },
  {
    title: 'a cluster of Redis is unreachable',
    ...{ code: 'D150', fix: /REPLAY_STORE/ },
    prepare: async () => ({ settings: { REPLAY_STORE: `redis+cluster://127.0.0.1:${await findFreePort()}` } }),
  },
  {
    title: 'Redis is a read-only replica',
    code: 'D155',
    fix: /master|primary/i,
    prepare: redis('REPLICAOF', '127.0.0.1', '1'),
    program,
  },
  {
    title: 'Redis is full',
    code: 'D156',
    fix: /maxmemory/,
    prepare: redis('CONFIG', 'SET', 'maxmemory', '1'),
    program,
  },
  {
    title: 'the user of Redis has no EVAL',
    code: 'D157',
    fix: /eval/i,
    prepare: redis('ACL', 'SETUSER', 'default', '-eval', '-evalsha'),
    program,
  },
  {
    title: 'the password of Redis is wrong',
    ...{ code: 'D151', fix: /REPLAY_STORE/ },
    prepare: async ({ stops }) => {
      const server = await startTestRedis({ password: 'right' });
      stops.push(() => server.stop());
      return { settings: { REPLAY_STORE: `redis://:wrong@127.0.0.1:${server.port}` } };
    },
    program,
  },
  {
    title: 'Redis is slower than REPLAY_TIMEOUT',
    ...{ code: 'D159', fix: /REPLAY_TIMEOUT/ },
    prepare: async () => ({ settings: { REPLAY_STORE: (await startImpostor(answerCheck)).url } }),
  },
];

const bend =
  (bent: Bend, settings: Settings = {}, args: readonly string[] = []) =>
  async ({ provider }: Workshop): Promise<SetUp> => {
    provider.bend = bent;
    return { settings, args };
  };

const late =
  (validity: TestValidity) =>
  async ({ stops }: Workshop): Promise<SetUp> => {
    const provider = await startBentProvider(validity);
    stops.push(() => provider.close());
    return { settings: { IDP_DOMAIN: provider.domain, NODE_EXTRA_CA_CERTS: provider.caFile } };
  };
const published = (jwk: object): readonly object[] => [{ kid: 'published', ...jwk }];
const publicJwk = (key: { readonly publicKey: { export(options: { readonly format: 'jwk' }): object } }): object =>
  key.publicKey.export({ format: 'jwk' });
const rsa = (bits: number) => generateKeyPairSync('rsa', { modulusLength: bits });

/** Providers that are wrongly set up, or are addressed wrongly. */
export const brokenProviders: readonly BrokenSetUp[] = [
  {
    title: 'private authority',
    code: 'D110',
    fix: /NODE_EXTRA_CA_CERTS=/,
    prepare: async () => ({ settings: { NODE_EXTRA_CA_CERTS: '' } }),
  },
  {
    title: 'certificate for another name',
    ...{ code: 'D111', fix: /IDP_DOMAIN/ },
    prepare: async (workshop) => {
      const port = Number(new URL(workshop.provider.issuer).port);
      const bridge = createTcpServer((socket) => void socket.pipe(connect(port, '127.0.0.1')).pipe(socket));
      await listenOn(workshop, bridge, port, '127.0.0.2');
      return { settings: { IDP_DOMAIN: `127.0.0.2:${port}` } };
    },
  },
  { title: 'certificate expired', code: 'D112', fix: /Renew the certificate/, prepare: late({ from: -2, to: -1 }) },
  { title: 'certificate not valid yet', code: 'D112', fix: /clock of this host/, prepare: late({ from: 1, to: 2 }) },
  {
    title: 'port of plain HTTP',
    ...{ code: 'D113', fix: /HTTPS port/ },
    prepare: async (workshop) => ({
      settings: {
        IDP_DOMAIN: `localhost:${await listenOn(
          workshop,
          createServer((_, response) => response.end()),
        )}`,
      },
    }),
  },
  {
    title: 'wrong port',
    ...{ code: 'D100', fix: /Correct host and port in IDP_DOMAIN/ },
    prepare: async () => ({ settings: { IDP_DOMAIN: `localhost:${await findFreePort()}` } }),
  },
  {
    title: 'host name that does not exist',
    code: 'D100',
    fix: /Correct host and port in IDP_DOMAIN/,
    prepare: async () => ({ settings: { IDP_DOMAIN: 'idp.invalid' } }),
  },
  { title: 'hangs', code: 'D100', fix: /network/, prepare: bend({ hangs: true }, {}, ['--timeout', '2']) },
  {
    title: 'behind a dead outbound proxy',
    ...{ code: 'D101', fix: /Correct HTTPS_PROXY, or exempt the host: NO_PROXY=localhost/ },
    prepare: async () => ({ settings: { HTTPS_PROXY: `http://127.0.0.1:${await findFreePort()}` } }),
  },
  { title: 'no discovery document', code: 'D102', fix: /IDP_DOMAIN/, prepare: bend({ discoveryStatus: 404 }) },
  { title: 'discovery is forbidden', code: 'D102', fix: /IDP_DOMAIN/, prepare: bend({ discoveryStatus: 403 }) },
  { title: 'discovery is a page of HTML', code: 'D102', fix: /IDP_DOMAIN/, prepare: bend({ html: 'discovery' }) },
  { title: 'discovery redirects', code: 'D102', fix: /IDP_DOMAIN/, prepare: bend({ discoveryStatus: 302 }) },
  {
    title: 'internal name as issuer',
    code: 'D103',
    fix: /^IDP_DOMAIN=public\.example/,
    prepare: bend({ issuer: 'https://public.example/' }),
  },
  {
    title: 'issuer with a path',
    code: 'D103',
    fix: /ISSUER=https:\/\/localhost:\d+\/realms\/main/,
    prepare: async ({ provider }) => bend({ issuer: `${provider.issuer}realms/main` })({ provider } as Workshop),
  },
  {
    title: 'issuer without its slash',
    code: 'D104',
    fix: /issuer exactly/,
    prepare: async ({ provider }) => bend({ issuer: provider.issuer.slice(0, -1) })({ provider } as Workshop),
  },
  {
    title: 'domain with https://',
    code: 'D105',
    fix: /^IDP_DOMAIN=localhost:\d+$/,
    prepare: async ({ provider }) => ({ settings: { IDP_DOMAIN: provider.issuer } }),
  },
  { title: 'status 429', code: 'D106', fix: /^The provider limits requests/, prepare: bend({ discoveryStatus: 429 }) },
  { title: 'status 500', code: 'D106', fix: /^The provider fails/, prepare: bend({ discoveryStatus: 500 }) },
  { title: 'clock ahead', code: 'D120', fix: /timedatectl set-ntp true/, prepare: bend({ lead: 602 }) },
  { title: 'clock behind', code: 'D120', fix: /timedatectl set-ntp true/, prepare: bend({ lead: -602 }) },
  { title: 'jwks_uri with http', code: 'D200', fix: /over https/, prepare: bend({ jwksUri: 'http://localhost/jwks' }) },
  {
    title: 'jwks_uri of another network',
    ...{ code: 'D201', fix: /network from this host/ },
    prepare: async (workshop) => bend({ jwksUri: `https://localhost:${await findFreePort()}/jwks` })(workshop),
  },
  {
    title: 'key set is a page of HTML',
    code: 'D201',
    fix: /Correct jwks_uri at the provider/,
    prepare: bend({ html: 'keys' }),
  },
  { title: 'no key', code: 'D202', fix: /Publish a key for signatures/, prepare: bend({ keys: [] }) },
  {
    title: 'ES256 keys with ALGORITHMS=RS256',
    ...{ code: 'D202', fix: /^ALGORITHMS=ES256, if the provider signs with it/ },
    prepare: bend({
      keys: published({ ...publicJwk(generateKeyPairSync('ec', { namedCurve: 'P-256' })), use: 'sig', alg: 'ES256' }),
    }),
  },
  {
    title: 'keys for encryption only',
    code: 'D202',
    fix: /Publish a key for signatures/,
    prepare: bend({ keys: published({ ...publicJwk(rsa(2048)), use: 'enc' }) }),
  },
  {
    title: 'RSA key of 1024 bits',
    code: 'D202',
    fix: /Publish a key for signatures/,
    prepare: bend({ keys: published({ ...publicJwk(rsa(1024)), use: 'sig' }) }),
  },
  {
    title: 'shared secret as key',
    code: 'D202',
    fix: /Publish a key for signatures/,
    prepare: bend({ keys: published({ kty: 'oct', k: 'AAAA', alg: 'HS256' }) }),
  },
];
