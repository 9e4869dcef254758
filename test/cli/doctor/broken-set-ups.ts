import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { calculateJwkThumbprint } from 'jose';
import type { FindingName } from '../../../src/cli/doctor/finding.ts';
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
  readonly name: FindingName;
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
      args: ['--from-outside', `${proxy.url}${path}`, ...(certificates === undefined ? [] : ['--only', 'url'])],
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
  {
    title: 'rules with an invalid path',
    name: 'rules_invalid',
    fix: /rules check/,
    prepare: rules(ruleText({ id: 'a', path: 'a' })),
  },
  { title: 'rules that are not JSON', name: 'rules_invalid', fix: /rules check/, prepare: rules('{ "rules": [') },
  {
    title: 'file of the rules missing',
    ...{ name: 'rules_invalid', fix: /RULES/ },
    prepare: async ({ folder }) => ({ settings: { RULES: join(folder, 'missing.json') } }),
  },
  {
    title: 'a rule that no request reaches',
    ...{ name: 'rule_doubtful', fix: /Remove the rule/ },
    prepare: rules(ruleText(open('all', '/a/**'), open('one', '/a'), open('more', '/a/*/**'))),
  },
  {
    title: 'nonce secrets of the instances differ',
    name: 'nonces_differ',
    fix: /same DPOP_NONCE_SECRET/,
    prepare: instances(nonces('a'), nonces('b')),
  },
  {
    title: 'each instance has its own replay memory',
    name: 'replay_not_shared',
    fix: /REPLAY_STORE=redis:/,
    prepare: instances({}, {}),
  },
  { title: 'the proxy ends TLS and is not trusted', name: 'url_differs', fix: /TRUST_PROXY=/, prepare: proxied('tls') },
  {
    title: 'the proxy replaces Host',
    name: 'url_differs',
    fix: /X-Forwarded-Host/,
    prepare: proxied({ sets: { host: 'internal.example' } }),
  },
  {
    title: 'the proxy strips a prefix',
    name: 'prefix_stripped',
    fix: /EXTERNAL_URL=.*\/v1/,
    prepare: proxied({ prefix: '/v1' }, { path: '/v1/api/private' }),
  },
  {
    title: 'the proxy removes Authorization',
    name: 'authorization_stripped',
    fix: /CGIPassAuth On/,
    prepare: proxied({ strips: ['authorization'] }),
  },
  {
    title: 'the proxy removes DPoP',
    name: 'dpop_stripped',
    fix: /DPoP header/,
    prepare: proxied({ strips: ['dpop'] }),
  },
  {
    title: 'the proxy refuses OPTIONS',
    name: 'preflight_refused',
    fix: /pass OPTIONS/,
    prepare: proxied({ answers: ['OPTIONS'] }),
  },
  {
    title: 'the proxy responds to OPTIONS with 502',
    name: 'preflight_refused',
    fix: /pass OPTIONS/,
    prepare: proxied({ answers: ['OPTIONS'], answerStatus: 502 }),
  },
  {
    title: 'nothing listens at the URL of the clients',
    ...{ name: 'url_unreachable', fix: /Start the service, or correct host and port/ },
    prepare: async () => ({ args: ['--from-outside', `http://127.0.0.1:${await findFreePort()}`] }),
  },
  {
    title: 'Redis behind sentinels is unreachable',
    ...{ name: 'redis_unreachable', fix: /REPLAY_STORE/ },
    prepare: async () => ({ settings: { REPLAY_STORE: `redis+sentinel://127.0.0.1:${await findFreePort()}/gate` } }),
  },
  {
    title: 'a cluster of Redis is unreachable',
    ...{ name: 'redis_unreachable', fix: /REPLAY_STORE/ },
    prepare: async () => ({ settings: { REPLAY_STORE: `redis+cluster://127.0.0.1:${await findFreePort()}` } }),
  },
  {
    title: 'Redis is a read-only replica',
    name: 'redis_readonly',
    fix: /master|primary/i,
    prepare: redis('REPLICAOF', '127.0.0.1', '1'),
    program,
  },
  {
    title: 'Redis is full',
    name: 'redis_full',
    fix: /maxmemory/,
    prepare: redis('CONFIG', 'SET', 'maxmemory', '1'),
    program,
  },
  {
    title: 'the user of Redis has no EVAL',
    name: 'redis_permissions',
    fix: /eval/i,
    prepare: redis('ACL', 'SETUSER', 'default', '-eval', '-evalsha'),
    program,
  },
  {
    title: 'the password of Redis is wrong',
    ...{ name: 'redis_login', fix: /REPLAY_STORE/ },
    prepare: async ({ stops }) => {
      const server = await startTestRedis({ password: 'right' });
      stops.push(() => server.stop());
      return { settings: { REPLAY_STORE: `redis://:wrong@127.0.0.1:${server.port}` } };
    },
    program,
  },
  {
    title: 'Redis is slower than REPLAY_TIMEOUT',
    ...{ name: 'redis_slow', fix: /REPLAY_TIMEOUT/ },
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
    name: 'certificate_untrusted',
    fix: /NODE_EXTRA_CA_CERTS=/,
    prepare: async () => ({ settings: { NODE_EXTRA_CA_CERTS: '' } }),
  },
  {
    title: 'certificate for another name',
    ...{ name: 'certificate_name', fix: /IDP_DOMAIN/ },
    prepare: async (workshop) => {
      const port = Number(new URL(workshop.provider.issuer).port);
      const bridge = createTcpServer((socket) => void socket.pipe(connect(port, '127.0.0.1')).pipe(socket));
      await listenOn(workshop, bridge, port, '127.0.0.2');
      return { settings: { IDP_DOMAIN: `127.0.0.2:${port}` } };
    },
  },
  {
    title: 'certificate expired',
    name: 'certificate_expired',
    fix: /Renew the certificate/,
    prepare: late({ from: -2, to: -1 }),
  },
  {
    title: 'certificate not valid yet',
    name: 'certificate_expired',
    fix: /clock of this host/,
    prepare: late({ from: 1, to: 2 }),
  },
  {
    title: 'port of plain HTTP',
    ...{ name: 'plain_http', fix: /HTTPS port/ },
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
    ...{ name: 'provider_unreachable', fix: /Correct host and port in IDP_DOMAIN/ },
    prepare: async () => ({ settings: { IDP_DOMAIN: `localhost:${await findFreePort()}` } }),
  },
  {
    title: 'host name that does not exist',
    name: 'provider_unreachable',
    fix: /Correct host and port in IDP_DOMAIN/,
    prepare: async () => ({ settings: { IDP_DOMAIN: 'idp.invalid' } }),
  },
  {
    title: 'hangs',
    name: 'provider_unreachable',
    fix: /network/,
    prepare: bend({ hangs: true }, {}, ['--timeout', '2']),
  },
  {
    title: 'behind a dead outbound proxy',
    ...{ name: 'proxy_failed', fix: /Correct HTTPS_PROXY.* exempt the provider in NO_PROXY/ },
    prepare: async () => ({ settings: { HTTPS_PROXY: `http://127.0.0.1:${await findFreePort()}` } }),
  },
  {
    title: 'no discovery document',
    name: 'keys_unavailable',
    fix: /IDP_DOMAIN/,
    prepare: bend({ discoveryStatus: 404 }),
  },
  {
    title: 'discovery is forbidden',
    name: 'keys_unavailable',
    fix: /IDP_DOMAIN/,
    prepare: bend({ discoveryStatus: 403 }),
  },
  {
    title: 'discovery is a page of HTML',
    name: 'keys_unavailable',
    fix: /page of HTML/,
    prepare: bend({ html: 'discovery' }),
  },
  {
    title: 'discovery redirects',
    name: 'keys_unavailable',
    fix: /redirect leads to/,
    prepare: bend({ discoveryStatus: 302 }),
  },
  {
    title: 'internal name as issuer',
    name: 'issuer_differs',
    fix: /^IDP_DOMAIN=public\.example/,
    prepare: bend({ issuer: 'https://public.example/' }),
  },
  {
    title: 'issuer with a path',
    name: 'issuer_differs',
    fix: /ISSUER=https:\/\/localhost:\d+\/realms\/main/,
    prepare: async ({ provider }) => bend({ issuer: `${provider.issuer}realms/main` })({ provider } as Workshop),
  },
  {
    title: 'issuer without its slash',
    name: 'issuer_differs',
    fix: /^ISSUER=https:\/\/localhost:\d+ instead of IDP_DOMAIN/,
    prepare: async ({ provider }) => bend({ issuer: provider.issuer.slice(0, -1) })({ provider } as Workshop),
  },
  {
    title: 'domain with https://',
    name: 'domain_with_scheme',
    fix: /^IDP_DOMAIN=localhost:\d+$/,
    prepare: async ({ provider }) => ({ settings: { IDP_DOMAIN: provider.issuer } }),
  },
  {
    title: 'status 429',
    name: 'keys_unavailable',
    fix: /^The provider limits requests/,
    prepare: bend({ discoveryStatus: 429 }),
  },
  {
    title: 'status 500',
    name: 'keys_unavailable',
    fix: /^The provider fails/,
    prepare: bend({ discoveryStatus: 500 }),
  },
  {
    title: 'clock of the provider ahead',
    name: 'clock_behind',
    fix: /timedatectl set-ntp true/,
    prepare: bend({ lead: 602 }),
  },
  {
    title: 'clock of the provider behind',
    name: 'clock_ahead',
    fix: /timedatectl set-ntp true/,
    prepare: bend({ lead: -602 }),
  },
  {
    title: 'jwks_uri with http',
    name: 'jwks_uri_invalid',
    fix: /over https/,
    prepare: bend({ jwksUri: 'http://localhost/jwks' }),
  },
  {
    title: 'jwks_uri of another network',
    ...{ name: 'keys_unavailable', fix: /Check DNS|network|Correct host/ },
    prepare: async (workshop) => bend({ jwksUri: `https://localhost:${await findFreePort()}/jwks` })(workshop),
  },
  {
    title: 'key set is a page of HTML',
    name: 'keys_unavailable',
    fix: /page of HTML/,
    prepare: bend({ html: 'keys' }),
  },
  { title: 'no key', name: 'no_usable_key', fix: /Publish a key for signatures/, prepare: bend({ keys: [] }) },
  {
    title: 'ES256 keys with ALGORITHMS=RS256',
    ...{ name: 'no_usable_key', fix: /^ALGORITHMS=ES256, if the provider signs with it/ },
    prepare: bend({
      keys: published({ ...publicJwk(generateKeyPairSync('ec', { namedCurve: 'P-256' })), use: 'sig', alg: 'ES256' }),
    }),
  },
  {
    title: 'keys for encryption only',
    name: 'no_usable_key',
    fix: /Publish a key for signatures/,
    prepare: bend({ keys: published({ ...publicJwk(rsa(2048)), use: 'enc' }) }),
  },
  {
    title: 'RSA key of 1024 bits',
    name: 'no_usable_key',
    fix: /Publish a key for signatures/,
    prepare: bend({ keys: published({ ...publicJwk(rsa(1024)), use: 'sig' }) }),
  },
  {
    title: 'shared secret as key',
    name: 'no_usable_key',
    fix: /Publish a key for signatures/,
    prepare: bend({ keys: published({ kty: 'oct', k: 'AAAA', alg: 'HS256' }) }),
  },
];
