import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCommand, runProcess } from '../../support/command-runs.ts';
import { useFolder } from '../../support/folder.ts';
import { send } from '../../support/http-client.ts';
import { startService } from '../../support/service-process.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { createClientCertificate, createTestCertificates } from '../../support/tls.ts';
import { bearer, startInVain, variants } from '../../support/variant-service.ts';

const provider = await useTestProvider();
const folder = useFolder();
let files = 0;

async function writeSettings(text: string): Promise<string> {
  const file = join(folder, `settings-${files++}.json`);
  await writeFile(file, text);
  return file;
}

describe.concurrent('settings that are wrong', () => {
  it('nothing set → exit 78, both names with their fix, nothing on stdout', async () => {
    const { end, stderr, logs } = await startInVain(startService());
    expect(end).toEqual({ code: 78, signal: null });
    expect(stderr).toMatch(/^portcullis: 2 settings are wrong\n/);
    expect(stderr).toMatch(/^ {2}IDP_DOMAIN: .*required.*host/m);
    expect(stderr).toMatch(/^ {2}IDP_AUDIENCE: .*required.*identifier/m);
    expect(logs).toEqual([]);
  });
});

describe('source of a setting', () => {
  it.each(variants)('variant $name, everything in the file → honoured', async (variant) => {
    const { domain, audience, caFile } = provider;
    const { names } = variant;
    const members = { [names.domain]: domain, [names.audience]: audience, variant: variant.name };
    const file = await writeSettings(
      JSON.stringify({ ...members, host: '127.0.0.1', port: 0, admin_port: 'off', docs: false }),
    );
    const service = await startService({
      environment: { HOST: undefined, PORT: undefined, ADMIN_PORT: undefined, NODE_EXTRA_CA_CERTS: caFile },
      args: ['--settings', file],
    });
    expect(service.adminUrl).toBeUndefined();
    expect((await send(service.url, '/api/private', { headers: bearer(await provider.sign()) })).status).toBe(200);
    expect((await send(service.url, '/docs')).status).toBe(404);
    expect(await service.stop()).toBe(0);
  });
});

describe.concurrent('the command', () => {
  it('help settings → every setting on stdout, exit 0; without a command → exit 64', async () => {
    const { status, stdout, stderr } = await runProcess(['help', 'settings'], {});
    expect([status, stderr]).toEqual([0, '']);
    for (const name of ['IDP_DOMAIN', 'IDP_AUDIENCE', 'DPOP_REQUIRED', 'ERROR_BODY', '--port']) {
      expect(stdout).toContain(name);
    }
    expect((await runCommand([], {})).status).toBe(64);
  });

  it('--version → the version alone; no such command → exit 64, named nowhere', async () => {
    expect((await runProcess(['--version'], {})).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const { status, stderr } = await runCommand(['open-sesame'], {});
    expect(status).toBe(64);
    expect(stderr).toMatch(/serve/);
    expect(stderr).not.toContain('sesame');
  });

  it('config → effective settings with their source, secrets hidden', async () => {
    const secrets = { DPOP_NONCE_SECRET: 'n'.repeat(40), REPLAY_STORE: 'redis://:store-password@redis:6379' };
    const environment = { IDP_DOMAIN: 'idp.example.test', IDP_AUDIENCE: 'https://api.example.test/', ...secrets };
    const { status, stdout } = await runProcess(['config', '--port', '8080'], environment);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^IDP_DOMAIN +idp\.example\.test +environment$/m);
    expect(stdout).toMatch(/^PORT +8080 +flag$/m);
    expect(stdout).toMatch(/^ERROR_BODY +detail +default$/m);
    expect(stdout).not.toMatch(/nnnn|store-password/);
    expect((await runCommand(['config'], {})).status).toBe(78);
    const json = await runCommand(['config', '--port', '8080', '--json'], environment);
    expect(json.stdout).not.toMatch(/nnnn|store-password/);
    const { version, settings } = JSON.parse(json.stdout);
    expect(version).toBe(1);
    expect(settings).toContainEqual({ name: 'PORT', value: '8080', source: 'flag' });
    expect(settings).toHaveLength(stdout.trimEnd().split('\n').length);
  });
});

/** Files that a person writes, by the setting that names each; all begin with a byte order mark. */
it('a byte order mark in every file: settings, secrets, certificates, keys, streams, rules → the gate starts, and admits', async () => {
  const marked = async (name: string, text: string): Promise<string> => {
    const file = join(folder, `marked-${name}`);
    await writeFile(file, `\ufeff${text}`);
    return file;
  };
  const [server, peer] = [await createTestCertificates(), await createClientCertificate()];
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const { issuer, audience } = provider;
  const authorizationFile = await marked('authorization', `Bearer ${'t'.repeat(40)}`);
  const stream = { transmitter: issuer, issuer, audience: 'https://api.test', authorizationFile };
  const upstream = {
    ...{ url: 'https://localhost:9', caFile: await marked('ca', server.ca) },
    ...{ certFile: await marked('client', peer.cert), keyFile: await marked('client-key', peer.key) },
  };
  const rules = {
    issuers: { main: { issuer, audience } },
    upstreams: { api: upstream },
    assertion: { issuer: 'https://api.example', audience: 'urn:api', header: 'X-Auth-Assertion' },
    rules: [{ id: 'all', path: '/**', upstream: 'api' }],
  };
  const rulesFile = await marked('rules', JSON.stringify(rules));
  const settings = { log_level: 'warn' };
  const environment = {
    ...{ TLS_CERT: await marked('cert', server.cert), TLS_KEY: await marked('key', server.key) },
    ...{ TLS_CLIENT_CA: await marked('client-ca', server.ca), NODE_EXTRA_CA_CERTS: provider.caFile },
    DPOP_NONCE_SECRET_FILE: await marked('nonce', `${'n'.repeat(40)}\r\n`),
    ...{ DPOP_NONCE: 'required', ADMIN_KEY_FILE: await marked('admin', 'a'.repeat(40)) },
    SHARED_SIGNALS: await marked('streams', JSON.stringify({ streams: { idp: stream } })),
    ...{ ASSERTION_KEY: await marked('assertion', pem), ASSERTION_KEYS_PUBLISHED: await marked('next', publicPem) },
  };
  const args = ['--rules', rulesFile, '--settings', await marked('settings', JSON.stringify(settings))];
  const gate = await startService({ command: 'gate', args, environment });
  await gate.stop();
  const { status, stdout } = await runCommand(['rules', 'check', rulesFile], {});
  expect(`${status} ${stdout}`).toMatch(/^0 /);

  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256' };
  const keys = await marked('jwks', JSON.stringify({ keys: [jwk] }));
  const flags = ['--jwks', keys, '--issuer', issuer, '--audience', audience];
  const explained = await runCommand(['explain', ...flags], {}, `Bearer ${await provider.sign()}`);
  expect(explained.stdout).toContain('unknown_kid');
});
