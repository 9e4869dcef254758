import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { SettingRow } from '../../src/server/settings/setting-row.ts';
import { settingTable } from '../../src/server/settings/setting-table.ts';
import { environmentName } from '../../src/server/settings/settings.ts';
import { variants } from '../../src/server/variants/variants.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { runCommand } from '../support/command-runs.ts';
import { enterConsole, makeKeyFolder } from '../support/console-client.ts';
import { startDev } from '../support/dev-process.ts';
import { createDpopClient } from '../support/dpop-client.ts';
import { useFolder } from '../support/folder.ts';
import { send } from '../support/http-client.ts';
import { type ServiceProcess, startService } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { bearer } from '../support/variant-service.ts';

/** Part of every secret in this file. Letters and digits, so that no percent-encoding changes it. */
const mark = 'zq7Marked9Secret';
const secret = `${mark}-${'x'.repeat(32)}`;
/** Forms in which the mark can be sent. */
const traces = [mark, mark.toLowerCase(), ...[0, 1, 2].map(encode), Buffer.from(mark).toString('hex')];

/** The part of the mark that base64 keeps, whatever is in front of it. */
function encode(shift: number): string {
  return Buffer.from(`${'.'.repeat(shift)}${mark}`)
    .toString('base64')
    .slice(4, -4);
}

function expectNoMark(output: string): void {
  const lines = output.split('\n').filter((line) => traces.some((trace) => line.includes(trace)));
  expect(lines).toEqual([]);
}

type Environment = Readonly<Record<string, string>>;

const folder = useFolder();
const provider = await useTestProvider();
const closed = `127.0.0.1:${await findFreePort()}`;
let rules: string;
const path = (name: string): string => join(folder, name);
const write = async (name: string, text: string): Promise<string> => {
  await writeFile(path(name), text);
  return path(name);
};

beforeAll(async () => {
  const issuers = { one: { issuer: provider.issuer, audience: provider.audience } };
  const open = { id: 'open', path: '/open', access: 'open' };
  rules = await write('rules.json', JSON.stringify({ issuers, rules: [open, { id: 'all', path: '/**' }] }));
});

/** Settings without secrets that can be used. */
const usable = (): Environment => ({
  IDP_DOMAIN: provider.domain,
  IDP_AUDIENCE: provider.audience,
  NODE_EXTRA_CA_CERTS: provider.caFile,
});

/** Each form of a Redis URL, with the mark wherever a user or a password may be written. */
const redisUrls = (address: string): readonly string[] =>
  ['', '+sentinel', '+cluster'].flatMap((kind) => {
    const hosts = kind === '' ? address : `${address},${address}`;
    const name = kind === '+sentinel' ? '/main' : '';
    return ['redis', 'rediss'].flatMap((scheme) =>
      [`:${mark}`, `user:${mark}`, mark, `user:a%40${mark}`].map(
        (credentials) => `${scheme}${kind}://${credentials}@${hosts}${name}`,
      ),
    );
  });

/** URLs of Redis that cannot be used, or hold the mark where it does not belong. */
const oddRedisUrls = (address: string): readonly string[] => [
  ...redisUrls(address).map((url) => url.replace(/^redis/, 'redsi')),
  ...redisUrls(address).map((url) => url.replace(/:\d+/g, ':port')),
  ...redisUrls(address).map((url) => url.replace('://', '//')),
  // Without a colon, the password would be a host.
  ...redisUrls(address)
    .map((url) => url.replace(/@.*/, ''))
    .filter((url) => /:.*:/.test(url)),
  ...redisUrls(address).map((url) => url.replace('a%40', 'a@')),
  ...['', '+sentinel', '+cluster'].flatMap((kind) => [
    `redis${kind}://${address}?password=${mark}`,
    `redis${kind}://${address}/main?password=${mark}`,
    `redis${kind}://${address}/main#${mark}`,
    `redis${kind}://user@${address}/0?password=${mark}`,
    `redis${kind}://${address},user:${mark}@${address}/main`,
    `redis${kind}://${address}:${mark}`,
    `redis${kind}://${address},${address}:${mark}/main`,
    `redis${kind}://user@${address}:${mark}`,
    `redis${kind}:user:${mark}`,
  ]),
  mark,
  `:${mark}`,
];

/** Addresses of an outbound proxy, some of which cannot be used. */
const proxyUrls = (address: string): readonly string[] =>
  ['http://', 'https://', 'socks5://', 'htp://', ''].flatMap((scheme) =>
    [`user:${mark}@${address}`, `${mark}@${address}`, `user:${mark}`, `user:${mark}@${address}:port`].map(
      (rest) => `${scheme}${rest}`,
    ),
  );

/** The commands that read settings and end. */
const commands: readonly (readonly string[])[] = [
  ['config'],
  ['serve'],
  ['gate'],
  ['gate', '--upstream', 'http://127.0.0.1:9'],
  ['doctor', '--timeout', '1'],
  ['doctor', '--json', '--timeout', '1'],
  ['explain', '--offline'],
  ['explain', '--offline', '--json'],
  ['token'],
];

/** Runs each command and returns its output. Skips commands that would run the service, if its settings can be used. */
async function runAll(
  environment: Environment,
  args: readonly string[] = [],
  input = 'Bearer undefined',
): Promise<string> {
  const outputs: string[] = [];
  const { status } = await runCommand(['config', ...args], environment);
  for (const command of commands) {
    const [name] = command;
    if (name === 'serve' && status !== 78) continue;
    if (name === 'gate' && (await runCommand(['config', ...args], { VARIANT: 'a', ...environment })).status !== 78)
      continue;
    const end = await runCommand([...command, ...(name === 'token' ? [] : args)], environment, input);
    outputs.push(end.stdout, end.stderr);
  }
  return outputs.join('\n');
}

/** Runs a command, whose output has no mark, and returns its end. */
async function expectUnmarked(command: readonly string[], environment: Environment, input?: string) {
  const end = await runCommand(command, environment, input);
  const shown = `${command.join(' ')} ${JSON.stringify(environment)}`;
  expect.soft(`${end.stdout}${end.stderr}`, shown).not.toMatch(new RegExp(mark, 'i'));
  return end;
}

/** Runs config with each value of a setting, and doctor with each value that can be used and one for each problem. */
async function expectEachUnmarked(values: readonly string[], name: string, doctor: readonly string[]): Promise<void> {
  const problems = new Set<string>();
  for (const value of values) {
    const environment = { ...usable(), [name]: value };
    const { status, stderr } = await expectUnmarked(['config'], environment);
    const problem = stderr.replace(/"[^"]*"/, '');
    // Commands share the text of a problem: for the next value that has it, doctor prints the same.
    if (status === 0 || !problems.has(problem)) await expectUnmarked(doctor, environment);
    problems.add(problem);
  }
}

/** The names that a setting of the table has in the environment. */
const names = Object.values(settingTable).map((row: SettingRow) => environmentName(row, variants.a));

describe('commands that end', () => {
  it('every setting is a URL with a password → not printed', async () => {
    const url = `https://user:${mark}@api.example`;
    const wrong = Object.fromEntries(names.map((name) => [name, url]));
    expectNoMark(await runAll(wrong));
    expectNoMark(await runAll(Object.fromEntries(names.map((name) => [`PORTCULLIS_${name}`, url]))));
    for (const name of names) expectNoMark((await runCommand(['config'], { ...usable(), [name]: url })).stdout);
    const file = await write('urls.json', JSON.stringify(wrong));
    expectNoMark(await runAll({}, ['--settings', file]));
  });

  it('every setting that is a secret, too short or of another type → not printed', async () => {
    for (const environment of [
      { DPOP_NONCE_SECRET: mark, LOG_IDENTITY_SECRET: mark, REPLAY_STORE: mark },
      { PORTCULLIS_DPOP_NONCE_SECRET: mark, PORTCULLIS_LOG_IDENTITY_SECRET: mark },
      { NO_PROXY: `https://user:${mark}@api.example` },
      { DPOP_NONCE_SECRT: secret, LOG_IDENTITY_SECERT: secret, PORTCULLIS_REPLAY_STOR: `redis://:${mark}@h` },
      { TLS_CERT: '/none', TLS_KEY: `-----BEGIN PRIVATE KEY-----\n${mark}\n-----END PRIVATE KEY-----\n` },
      { TLS_CERT: '/none', TLS_KEY: `-----BEGIN PRIVATE KEY-----\\n${mark}\\n-----END PRIVATE KEY-----\\n` },
    ] as readonly Environment[]) {
      expectNoMark(await runAll({ ...usable(), PORT: 'x', ...environment }));
    }
    for (const value of [mark, [mark], { password: mark }, { url: `redis://:${mark}@h` }, `${mark}\n`]) {
      const content = { dpop_nonce_secret: value, log_identity_secret: value, replay_store: value, port: 'x' };
      expectNoMark(await runAll(usable(), ['--settings', await write('secrets.json', JSON.stringify(content))]));
    }
    const broken = await write('broken.json', `{ "dpop_nonce_secret": "${mark}", }`);
    expectNoMark(await runAll(usable(), ['--settings', broken]));
    const twice = await write('twice.json', `{ "replay_store": "redis://:${mark}@h", "replay_store": "off" }`);
    expectNoMark(await runAll(usable(), ['--settings', twice]));
  });

  it('NAME_FILE: the file holds a wrong secret, or the variable holds the secret itself → not printed', async () => {
    const file = await write('secret', mark);
    const store = await write('store', `redsi://user:${mark}@h`);
    for (const environment of [
      { DPOP_NONCE_SECRET_FILE: file, LOG_IDENTITY_SECRET_FILE: file, REPLAY_STORE_FILE: store },
      { DPOP_NONCE_SECRET_FILE: secret, LOG_IDENTITY_SECRET_FILE: secret, REPLAY_STORE_FILE: `redis://:${mark}@h` },
      { DPOP_NONCE_SECRET_FILE: `/${secret}/${secret}`, REPLAY_STORE_FILE: `./${secret}` },
      { DPOP_NONCE_SECRET_FILE: file, DPOP_NONCE_SECRET: secret },
    ]) {
      expectNoMark(await runAll({ ...usable(), ...environment, PORT: 'x' }));
    }
  });

  it('a secret on the command line → not printed', async () => {
    for (const args of [
      ['--dpop-nonce-secret', secret],
      [`--dpop-nonce-secret=${secret}`],
      ['--log-identity-secret', secret],
      ['--replay-store', `redis://:${mark}@h`],
      [`--replay-store=redis+sentinel://:${mark}@one,two/main`],
      ['--dpop-nonce-secrt', secret],
      [`--dpop-nonce-secrt=${secret}`],
      [secret],
      ['--issuer', `https://user:${mark}@id.example`],
      ['--domain', `user:${mark}@id.example`],
      ['--upstream', `http://user:${mark}@api.example`],
    ]) {
      expectNoMark(await runAll({ ...usable(), PORT: 'x' }, args));
    }
  });

  it('every form of a Redis URL, right and wrong, with the mark in any place → not printed', async () => {
    const doctor = ['doctor', '--only', 'redis', '--timeout', '1'];
    await expectEachUnmarked([...redisUrls(closed), ...oddRedisUrls(closed)], 'REPLAY_STORE', doctor);
  });

  it('every form of an outbound proxy, right and wrong → not printed', async () => {
    const doctor = ['doctor', '--only', 'provider,tls', '--timeout', '1'];
    for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy'])
      await expectEachUnmarked(proxyUrls(closed), name, doctor);
  });

  it('URLs with a password as flags of doctor, explain and token → not printed', async () => {
    const url = `http://user:${mark}@${closed}`;
    const open = `http://user:${mark}@127.0.0.1`;
    for (const args of [
      ['doctor', '--from-outside', url, '--peer', url, '--peer', `${url}/x`, '--timeout', '1'],
      ['doctor', '--from-outside', `${url}/?password=${mark}`, '--timeout', '1'],
      ['doctor', '--from-outside', `ftp://user:${mark}@${closed}`],
      ['explain', '--server', url],
      ['explain', '--server', `ftp://user:${mark}@h`],
      ['explain', '--id', 'x', '--admin', url],
      ['explain', '--id', mark, '--admin', open],
      ['explain', '--url', `https://user:${mark}@api.example/x`, '--offline'],
      ['explain', '--issuer', `https://user:${mark}@id.example`, '--audience', 'x'],
      ['token', '--idp', url],
      ['token', '--idp', `user:${mark}`],
      ['token', '--url', url],
      ['token', '--dpop', '--url', `ftp://user:${mark}@h`],
      ['dev', '--upstream', url],
    ]) {
      const input = `curl -u user:${mark} -H 'Authorization: Bearer undefined' https://user:${mark}@api.example/`;
      await expectUnmarked(args, usable(), input);
    }
  });

  it('rules and cases with URLs that have a password → not printed', async () => {
    const issuer = `https://user:${mark}@id.example`;
    const open = [{ id: 'all', path: '/**', access: 'open' }];
    const odd = await write('odd.json', JSON.stringify({ issuers: { one: { issuer, jwksUri: issuer } }, rules: open }));
    const sample = { method: 'GET', url: `https://user:${mark}@api.example/open`, expect: 'refused' };
    const cases = await write('cases.json', JSON.stringify([sample]));
    for (const args of [
      ['rules', 'check', odd],
      ['rules', 'test', rules, cases],
      ['gate', '--rules', odd],
      ['doctor', '--only', 'rules', '--rules', odd],
      ['explain', '--rules', odd, '--url', `https://user:${mark}@api.example/open`],
    ]) {
      await expectUnmarked(args, {}, 'Bearer undefined');
    }
  });
});

describe('a running service', () => {
  const secrets = async (): Promise<Environment> => ({
    ...usable(),
    DPOP_NONCE: 'required',
    DPOP_NONCE_SECRET_FILE: await write('nonce', secret),
    LOG_IDENTITY: 'hashed',
    LOG_IDENTITY_SECRET: secret,
    HTTP_PROXY: `http://user:${mark}@${closed}`,
    HTTPS_PROXY: `http://user:${mark}@${closed}`,
    NO_PROXY: `user:${mark}@elsewhere.example`,
  });

  /** Collects the output of a service: responses, metrics, console, log, and what doctor prints about it. */
  async function listen(service: ServiceProcess, token: string, console: string | undefined): Promise<string> {
    const client = createDpopClient();
    const { authorization, dpop } = client.headers(token, { url: `${service.url}/api/private` });
    const heard: string[] = [];
    const hear = async (url: string, path: string, headers: readonly string[] = []): Promise<void> => {
      heard.push((await send(url, path, { headers })).text);
    };
    await hear(service.url, '/api/public');
    await hear(service.url, '/api/private', bearer(token));
    await hear(service.url, '/api/private', ['Authorization', authorization, 'DPoP', dpop]);
    await hear(service.url, '/openapi.json');
    await hear(service.url, '/.well-known/oauth-protected-resource');
    await writeFile(path('nonce'), `${secret}${mark}`);
    service.signal('SIGHUP');
    for (const each of ['/metrics', '/readyz', '/healthz']) await hear(service.adminUrl ?? '', each);
    if (console !== undefined) {
      const cookie = ['Cookie', await enterConsole(service.adminUrl ?? '', console)];
      await hear(service.adminUrl ?? '', '/console/api/state', cookie);
    }
    const { port } = new URL(service.url);
    const outside = ['--from-outside', `http://user:${mark}@127.0.0.1:${port}`];
    const peer = ['--peer', `http://user:${mark}@127.0.0.1:${port}`];
    const seen = await runCommand(['doctor', ...outside, ...peer, ...peer, '--timeout', '5'], usable());
    heard.push(seen.stdout, seen.stderr);
    expect(await service.stop()).toBe(0);
    await client.close();
    return [...heard, JSON.stringify(service.logs), service.stderr].join('\n');
  }

  it.each([
    ['a single Redis with TLS', `rediss://:${mark}@${closed}`],
    ['sentinels', `redis+sentinel://user:${mark}@${closed},${closed}/main`],
  ])('serve, every secret set, %s, the proxy and the provider unreachable → not printed', async (_name, url) => {
    const key = await makeKeyFolder();
    const environment = { ...(await secrets()), ...key.environment, REPLAY_STORE: url };
    const service = await startService({ environment });
    await service.findLog(({ event }) => event === 'replay_store_down');
    const said = await listen(service, await provider.sign(), await key.readKey());
    await key.close();
    expect(said).toContain('replay_store_down');
    expectNoMark(said);
  });

  it('serve with two processes, variant B whose provider is unreachable → not printed', async () => {
    const { IDP_DOMAIN: domain, IDP_AUDIENCE: audience, ...others } = await secrets();
    const service = await startService({ environment: { ...(await secrets()), WORKERS: '2', DPOP_ENABLED: 'false' } });
    expectNoMark(await listen(service, await provider.sign(), undefined));
    const variant = { VARIANT: 'b', IdpDomain: domain ?? '', IdpApiIdentifier: audience ?? '' };
    const environment = { ...others, ...variant, PORT: '0', ADMIN_PORT: 'off' };
    const { stdout, stderr, status } = await runCommand(['serve'], environment);
    expect(status).toBe(69);
    expectNoMark(`${stdout}${stderr}`);
  });

  it.each([
    [[], `redis+cluster://:${mark}@${closed},${closed}`],
    [['--upstream', `http://${closed}`], `redis://user:${mark}@${closed}`],
  ])('gate %j, %s, every secret set, all targets unreachable → not printed', async (flags, url) => {
    const environment = { ...(await secrets()), REPLAY_STORE: url };
    const service = await startService({ command: 'gate', args: ['--rules', rules, ...flags], environment });
    await service.findLog(({ event }) => event === 'replay_store_down');
    expectNoMark(await listen(service, await provider.sign(), undefined));
  });

  it('dev, every secret set → not printed', async () => {
    const { IDP_DOMAIN: _domain, IDP_AUDIENCE: _audience, NODE_EXTRA_CA_CERTS: _ca, ...others } = await secrets();
    const dev = await startDev([], { ...others, REPLAY_STORE: `redis+sentinel://:${mark}@${closed}/main` });
    const asked = await Promise.all([
      runCommand(['token'], dev.environment),
      runCommand(['token', '--dpop', '--url', `http://user:${mark}@${closed}`], dev.environment),
      runCommand(['explain'], dev.environment, 'Bearer undefined'),
      runCommand(['doctor', '--timeout', '1'], { ...dev.environment, ...others }),
    ]);
    await dev.stop();
    expectNoMark([dev.output, ...asked.flatMap(({ stdout, stderr }) => [stdout, stderr])].join('\n'));
  });
});
