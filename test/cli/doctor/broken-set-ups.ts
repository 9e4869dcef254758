import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import type { FindingName } from '../../../src/cli/doctor/finding.ts';
import { findFreePort } from '../../../tools/shared/network.js';
import { startTestRedis } from '../../support/redis.ts';
import { answerCheck, startImpostor } from '../../support/redis-store.ts';
import { createTestCertificates, type TestCertificates } from '../../support/tls.ts';
import { findVariant, openVariant } from '../../support/variant-service.ts';
import { type Bend, type BentProvider, startBentProvider } from './bent-provider.ts';
import { type ProxyBend, startBentProxy } from './bent-proxy.ts';

type Settings = Readonly<Record<string, string>>;

/** Flags and settings of one run of `doctor`. */
type SetUp = Readonly<{ args?: readonly string[]; settings?: Settings }>;

/** Resources of a set-up. */
export interface Workshop {
  /** A provider without a defect, unless the set-up bends it. */
  readonly provider: BentProvider;
  /** Providers whose certificates have expired, or are not valid yet. */
  readonly late: { readonly expired: BentProvider; readonly future: BentProvider };
  /** Certificates of a proxy. */
  readonly proxy: TestCertificates;
  readonly folder: string;
  /** The authorities of all of them, in one file: `runCommand` starts a process for each file. */
  readonly caFile: string;
  /** Called after the run, the last one first. */
  readonly stops: (() => unknown)[];
}

/** A set-up that does not work: the only failure that `doctor` may find, its fix, and a program that is required. */
export type BrokenSetUp = readonly [
  title: string,
  name: FindingName,
  fix: RegExp,
  prepare: (workshop: Workshop) => Promise<SetUp>,
  program?: 'redis-server',
];

const origin = 'https://app.example';
export const audience = 'https://api.example/';

export async function openWorkshop(): Promise<Workshop> {
  const [folder, proxy, provider, expired, future] = await Promise.all([
    mkdtemp(join(tmpdir(), 'portcullis-broken-')),
    createTestCertificates(),
    startBentProvider(),
    startBentProvider({ from: -2, to: -1 }),
    startBentProvider({ from: 1, to: 2 }),
  ]);
  const caFile = join(folder, 'authorities.pem');
  const authorities = [provider, expired, future].map((each) => readFileSync(each.caFile, 'utf8'));
  await writeFile(caFile, [proxy.ca, ...authorities].join('\n'));
  return { provider, late: { expired, future }, proxy, folder, caFile, stops: [] };
}

export async function closeWorkshop({ provider, late, folder }: Workshop): Promise<void> {
  await Promise.all([provider, late.expired, late.future].map((each) => each.close()));
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

const set =
  (read: Settings | ((workshop: Workshop) => Settings | Promise<Settings>)) =>
  async (workshop: Workshop): Promise<SetUp> => ({
    settings: typeof read === 'function' ? await read(workshop) : read,
  });

/** A service behind a proxy. */
const proxied =
  (
    bend: ProxyBend | 'tls',
    { path = '', running = {}, settings = {} }: Readonly<Record<string, string | Settings>> = {},
  ) =>
  async (workshop: Workshop): Promise<SetUp> => {
    const provider = { ...workshop.provider, audience };
    const more = { CORS_ORIGINS: origin, TRUST_PROXY: '127.0.0.1', ...(running as Settings) };
    const service = await openVariant(findVariant('a'), provider, more);
    workshop.stops.push(() => service.stop());
    const elsewhere = { '/metrics': service.adminUrl ?? '' };
    const used = bend === 'tls' ? { tls: workshop.proxy } : bend;
    const proxy = await startBentProxy(service.url, 'elsewhere' in used ? { elsewhere } : used);
    workshop.stops.push(() => proxy.close());
    return {
      args: ['--from-outside', `${proxy.url}${path}`],
      settings: { CORS_ORIGINS: origin, ...(settings as Settings) },
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
/** A Redis, addressed by a URL that is not for it. */
const misread =
  (change: (url: string) => string) =>
  async ({ stops }: Workshop): Promise<SetUp> => {
    const server = await startTestRedis();
    stops.push(() => server.stop());
    return { settings: { REPLAY_STORE: change(server.url) } };
  };
/** A port that speaks TLS. */
async function tlsPort(workshop: Workshop, scheme: string): Promise<string> {
  return `${scheme}://127.0.0.1:${await listenOn(workshop, createTlsServer(await createTestCertificates()))}`;
}
const awayRedis = (scheme: string, path = '') =>
  set(async () => ({ REPLAY_STORE: `${scheme}://127.0.0.1:${await findFreePort()}${path}` }));
const program = 'redis-server';

const elsewhere = { EXTERNAL_URL: 'https://api.example' };

/** Deployments in which something around a healthy provider is wrong. */
export const brokenDeployments: readonly BrokenSetUp[] = [
  ['rules with an invalid path', 'rules_invalid', /rules check/, rules(ruleText({ id: 'a', path: 'a' }))],
  ['rules that are not JSON', 'rules_invalid', /rules check/, rules('{ "rules": [')],
  [
    'file of the rules missing',
    'rules_invalid',
    /^Name a readable file/,
    async ({ folder }) => ({ settings: { RULES: join(folder, 'missing.json') } }),
  ],
  [
    'folder of the rules without a rules file',
    'rules_invalid',
    /^Add a file with \.json/,
    async ({ folder }) => ({ settings: { RULES: await mkdtemp(join(folder, 'rules-')) } }),
  ],
  [
    'a rule that no request reaches',
    'rule_doubtful',
    /Remove the rule/,
    rules(ruleText(open('all', '/a/**'), open('one', '/a'), open('more', '/a/*/**'))),
  ],
  ['the proxy ends TLS and is not trusted', 'url_differs', /TRUST_PROXY=/, proxied('tls')],
  ['the proxy replaces Host', 'url_differs', /X-Forwarded-Host/, proxied({ sets: { host: 'internal.example' } })],
  [
    'EXTERNAL_URL is another host',
    'url_differs',
    /^EXTERNAL_URL=http:\/\/127\.0\.0\.1:\d+, with the prefix/,
    proxied({}, { running: elsewhere, settings: elsewhere }),
  ],
  [
    'the proxy strips a prefix',
    'prefix_stripped',
    /EXTERNAL_URL=.*\/v1/,
    proxied({ prefix: '/v1' }, { path: '/v1/api/private' }),
  ],
  ['the proxy removes Authorization', 'authorization_stripped', /CGIPassAuth/, proxied({ strips: ['authorization'] })],
  ['the proxy removes DPoP', 'dpop_stripped', /DPoP header/, proxied({ strips: ['dpop'] })],
  ['the proxy refuses OPTIONS', 'preflight_refused', /pass OPTIONS/, proxied({ answers: ['OPTIONS'] })],
  [
    'the proxy responds to OPTIONS with 502',
    'preflight_refused',
    /pass OPTIONS/,
    proxied({ answers: ['OPTIONS'], answerStatus: 502 }),
  ],
  [
    'nothing listens at the URL of the clients',
    'url_unreachable',
    /Start the service, or correct host and port/,
    async () => ({ args: ['--from-outside', `http://127.0.0.1:${await findFreePort()}`] }),
  ],
  ['unreachable Redis behind sentinels', 'redis_unreachable', /REPLAY_STORE/, awayRedis('redis+sentinel', '/gate')],
  ['unreachable cluster of Redis', 'redis_unreachable', /REPLAY_STORE/, awayRedis('redis+cluster')],
  ['Redis is a read-only replica', 'redis_readonly', /master|primary/i, redis('REPLICAOF', '127.0.0.1', '1'), program],
  ['Redis is full', 'redis_full', /maxmemory/, redis('CONFIG', 'SET', 'maxmemory', '1'), program],
  [
    'Redis without EVAL',
    'redis_permissions',
    /eval/i,
    redis('ACL', 'SETUSER', 'default', '-eval', '-evalsha'),
    program,
  ],
  [
    'the password of Redis is wrong',
    'redis_login',
    /REPLAY_STORE/,
    async ({ stops }) => {
      const server = await startTestRedis({ password: 'right' });
      stops.push(() => server.stop());
      return { settings: { REPLAY_STORE: `redis://:wrong@127.0.0.1:${server.port}` } };
    },
    program,
  ],
  [
    'Redis without TLS',
    'redis_tls',
    /write redis instead of rediss/,
    misread((url) => url.replace('redis', 'rediss')),
    program,
  ],
  ['Redis without this database', 'redis_url', /CONFIG GET databases/, misread((url) => `${url}/99`), program],
  [
    'Redis instead of its sentinels',
    'redis_url',
    /to redis:\/\/host:port/,
    misread((url) => `${url.replace('redis', 'redis+sentinel')}/gate`),
    program,
  ],
  [
    'Redis without cluster mode',
    'redis_url',
    /not part of a cluster/,
    misread((url) => url.replace('redis', 'redis+cluster')),
    program,
  ],
  [
    'Redis with the certificate of a private authority',
    'redis_tls',
    /NODE_EXTRA_CA_CERTS/,
    async (workshop) => ({ settings: { REPLAY_STORE: await tlsPort(workshop, 'rediss') } }),
  ],
  [
    'Redis with TLS, and a URL without',
    'redis_unreachable',
    /write rediss instead of redis/,
    async (workshop) => ({ settings: { REPLAY_STORE: await tlsPort(workshop, 'redis') } }),
  ],
  [
    'slow Redis',
    'redis_slow',
    /REPLAY_TIMEOUT/,
    set(async () => ({ REPLAY_STORE: (await startImpostor(answerCheck)).url })),
  ],
];

const bend =
  (bent: Bend, settings: Settings = {}, args: readonly string[] = []) =>
  async ({ provider }: Workshop): Promise<SetUp> => {
    provider.bend = bent;
    return { settings, args };
  };

const late = (when: keyof Workshop['late']) => set((workshop) => ({ IDP_DOMAIN: workshop.late[when].domain }));
const published = (jwk: object): readonly object[] => [{ kid: 'published', ...jwk }];
const publicJwk = (key: { readonly publicKey: { export(options: { readonly format: 'jwk' }): object } }): object =>
  key.publicKey.export({ format: 'jwk' });
const rsa = (bits: number) => generateKeyPairSync('rsa', { modulusLength: bits });

const place = /Correct host and port in IDP_DOMAIN/;
const signatures = /Publish a key for signatures/;

/** Providers that are wrongly set up, or are addressed wrongly. */
export const brokenProviders: readonly BrokenSetUp[] = [
  ['private authority', 'certificate_untrusted', /NODE_EXTRA_CA_CERTS=/, set({ NODE_EXTRA_CA_CERTS: '' })],
  [
    'certificate for another name',
    'certificate_name',
    /IDP_DOMAIN/,
    async (workshop) => {
      const port = Number(new URL(workshop.provider.issuer).port);
      const bridge = createTcpServer((socket) => void socket.pipe(connect(port, '127.0.0.1')).pipe(socket));
      await listenOn(workshop, bridge, port, '127.0.0.2');
      return { settings: { IDP_DOMAIN: `127.0.0.2:${port}` } };
    },
  ],
  ['certificate expired', 'certificate_expired', /Renew the certificate/, late('expired')],
  ['certificate not valid yet', 'certificate_expired', /clock of this host/, late('future')],
  [
    'port of plain HTTP',
    'plain_http',
    /HTTPS port/,
    set(async (workshop) => {
      const server = createServer((_, response) => response.end());
      return { IDP_DOMAIN: `localhost:${await listenOn(workshop, server)}` };
    }),
  ],
  ['wrong port', 'provider_unreachable', place, set(async () => ({ IDP_DOMAIN: `localhost:${await findFreePort()}` }))],
  ['host name that does not exist', 'provider_unreachable', place, set({ IDP_DOMAIN: 'idp.invalid' })],
  ['hangs', 'provider_unreachable', /network/, bend({ hangs: true }, {}, ['--timeout', '1'])],
  [
    'behind a dead outbound proxy',
    'proxy_failed',
    /Correct HTTPS_PROXY.* exempt the provider in NO_PROXY/,
    async () => ({ settings: { HTTPS_PROXY: `http://127.0.0.1:${await findFreePort()}` } }),
  ],
  ['internal name as issuer', 'issuer_differs', /^IDP_DOMAIN=public\./, bend({ issuer: 'https://public.example/' })],
  [
    'issuer with a path',
    'issuer_differs',
    /ISSUER=https:\/\/localhost:\d+\/realms\/main/,
    async ({ provider }) => bend({ issuer: `${provider.issuer}realms/main` })({ provider } as Workshop),
  ],
  [
    'issuer without its slash',
    'issuer_differs',
    /^ISSUER=https:\/\/localhost:\d+, and remove IDP_DOMAIN/,
    async ({ provider }) => bend({ issuer: provider.issuer.slice(0, -1) })({ provider } as Workshop),
  ],
  [
    'domain with https://',
    'domain_with_scheme',
    /^IDP_DOMAIN=localhost:\d+$/,
    async ({ provider }) => ({ settings: { IDP_DOMAIN: provider.issuer } }),
  ],
  ['no metadata', 'keys_unavailable', /address of its keys \(JWKS_URI\)/, bend({ status: 404 })],
  ['clock of the provider ahead', 'clock_behind', /timedatectl set-ntp true/, bend({ lead: 602 })],
  ['clock of the provider behind', 'clock_ahead', /timedatectl set-ntp true/, bend({ lead: -602 })],
  ['jwks_uri with http', 'jwks_uri_invalid', /over https/, bend({ jwksUri: 'http://localhost/jwks' })],
  [
    'jwks_uri of another network',
    'keys_unavailable',
    /Check DNS|network|Correct host/,
    async (workshop) => bend({ jwksUri: `https://localhost:${await findFreePort()}/jwks` })(workshop),
  ],
  [
    'JWKS_URI is another document',
    'keys_unavailable',
    /^Compare JWKS_URI with the guide/,
    async ({ provider }) => ({ settings: { JWKS_URI: `${provider.issuer}elsewhere` } }),
  ],
  [
    'ES256 keys with ALGORITHMS=RS256',
    'no_usable_key',
    /^ALGORITHMS=ES256, if the provider signs with it/,
    bend({
      keys: published({ ...publicJwk(generateKeyPairSync('ec', { namedCurve: 'P-256' })), use: 'sig', alg: 'ES256' }),
    }),
  ],
  [
    'keys for encryption',
    'no_usable_key',
    signatures,
    bend({ keys: published({ ...publicJwk(rsa(2048)), use: 'enc' }) }),
  ],
  [
    'RSA key of 1024 bits',
    'no_usable_key',
    signatures,
    bend({ keys: published({ ...publicJwk(rsa(1024)), use: 'sig' }) }),
  ],
  ['shared secret', 'no_usable_key', signatures, bend({ keys: published({ kty: 'oct', k: 'AAAA', alg: 'HS256' }) })],
];
