import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../support/command-runs.ts';

const run = promisify(execFile);
const main = 'dist/cli/main.js';
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-help-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const environment = () => ({ PATH: process.env['PATH'], XDG_CACHE_HOME: folder });

test.each(['serve', 'gate', 'config', 'rules', 'dev', 'token', 'explain', 'doctor'])(
  '%s --help → help, and 0',
  async (command) => {
    const { status, stdout, stderr } = await runCommand([command, '--help'], environment());
    expect(status).toBe(0);
    expect(stdout).toContain('portcullis');
    expect(stdout.split('\n').length).toBeGreaterThan(5);
    expect(stderr).toBe('');
  },
);

test('--help → names the settings file', async () => {
  const { stdout } = await run(process.execPath, [main, '--help'], { env: environment() });
  expect(stdout).toContain('--settings ');
});

test('dev --only-provider → a provider, how to use it, and no service', async () => {
  const child = spawn(process.execPath, [main, 'dev', '--only-provider', '--idp-port', '0'], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  for await (const chunk of child.stdout) {
    text += chunk;
    if (text.includes('Stop with Ctrl-C')) break;
  }
  expect(text).toMatch(/^Identity provider {2}https:\/\/localhost:\d+\/$/m);
  expect(text).not.toContain('Service ');
  const [, certificate = ''] = /export NODE_EXTRA_CA_CERTS=(.*)/.exec(text) ?? [];
  expect(await readFile(certificate, 'utf8')).toContain('BEGIN CERTIFICATE');
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('dev: a flag wins over a variable with the prefix, and the local provider over PORTCULLIS_ISSUER', async () => {
  const variables = { PORTCULLIS_PORT: '0', PORTCULLIS_ISSUER: 'https://idp.test/', PORTCULLIS_ADMIN_PORT: 'off' };
  const env = { ...environment(), ...variables };
  const ended = await run(process.execPath, [main, 'dev', '--idp-port', '0', '--port', 'x'], { env }).catch(
    (error) => error,
  );
  expect(ended).toMatchObject({
    code: 78,
    stderr: 'portcullis: one setting is wrong\n  PORT: "x" is not valid. Set a number from 0 to 65535.\n',
  });
});

test('help rules → the help of that command', async () => {
  const { stdout } = await run(process.execPath, [main, 'help', 'rules'], { env: environment() });
  expect(stdout).toMatch(/^portcullis rules checks a rules file/);
});

const named = ['explain', '--issuer', 'https://idp.test/', '--audience', 'a'];

test.each<[readonly string[], number, string]>([
  [['serv'], 64, 'Did you mean serve?'],
  [['dev', '--prot', '1'], 64, 'portcullis: there is no flag --prot. Did you mean --port?'],
  [['explain', '--issuer', 'https://idp.test/'], 64, 'portcullis: --issuer needs --audience.'],
  [['explain', '--file', '/nowhere/at/all'], 64, 'portcullis: the file of --file cannot be read.'],
  [['doctor'], 78, 'To check a running service without its settings: portcullis doctor --from-outside URL'],
  [['serve', '--isuer', 'https://idp.test/'], 64, 'portcullis: there is no flag --isuer. Did you mean --issuer?'],
  [
    ['gate', '--upstraem', 'http://127.0.0.1:1'],
    64,
    'portcullis: there is no flag --upstraem. Did you mean --upstream?',
  ],
  [['config', '-x'], 64, 'portcullis: there is no flag -x.'],
  [['doctor', '--timout=1'], 64, 'portcullis: there is no flag --timout. Did you mean --timeout?'],
  [[...named, '--scopes', 'write:x'], 64, 'portcullis: there is no flag --scopes. Did you mean --scope?'],
  [[...named, '--expct', 'expired'], 64, 'portcullis: there is no flag --expct. Did you mean --expect?'],
  [[...named, '--offlin'], 64, 'portcullis: there is no flag --offlin. Did you mean --offline?'],
  [['explain', '--server', 'http://a.test', '--jsn'], 64, 'portcullis: there is no flag --jsn. Did you mean --json?'],
])('%j → %i, and what was meant', async (words, code, text) => {
  const ended = await run(process.execPath, [main, ...words], { env: environment() }).catch((error) => error);
  expect(ended).toMatchObject({ code, stderr: expect.stringContaining(text) });
  // The value behind a flag that does not exist is no second mistake.
  expect(ended.stderr).not.toContain('argument:');
});
