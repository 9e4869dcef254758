import { execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { type CommandRow, commandTable, isCommand } from '../../src/cli/commands/command-table.ts';
import { findUnknownFlag } from '../../src/cli/commands/flags.ts';
import { readGateSettings } from '../../src/gate/gate-settings.ts';
import { readSettings } from '../../src/server/settings/settings.ts';
import { runCommand } from '../support/command-runs.ts';
import { useFolder } from '../support/folder.ts';

const run = promisify(execFile);
const main = 'dist/cli/main.js';
const folder = useFolder();

const environment = () => ({ PATH: process.env['PATH'], XDG_CACHE_HOME: folder });

const commands = Object.entries<CommandRow>(commandTable);

test.each(commands)(
  '%s --help → its flags, at most five settings and three examples, in 60 lines of 80 columns',
  async (name, command) => {
    for (const args of [
      [name, '--help'],
      [name, '-h'],
      ['help', name],
    ]) {
      const { status, stdout, stderr } = await runCommand(args, environment());
      expect([status, stderr]).toEqual([0, '']);
      expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
      expect(stdout.split('\n').length).toBeLessThanOrEqual(61);
      for (const flag of Object.keys(command.flags)) expect(stdout).toMatch(new RegExp(`^  --${flag}[ \n]`, 'm'));
      expect(stdout.split('Examples:\n')[1]?.trimEnd().split('\n')).toHaveLength(3);
    }
  },
);

test('a build → its file can be executed, as npx does in a clone', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'));
  expect((await run(main, ['--version'])).stdout).toContain(version);
});

test.each(commands)('%s: no example has an unknown flag', (_name, { examples }) => {
  for (const example of examples) {
    const [, name = '', rest = ''] = /portcullis (\w+) ?([^|)]*)/.exec(example) ?? [];
    if (!isCommand(name)) throw new Error(`there is no command ${name}`);
    expect(findUnknownFlag(rest.split(' '), commandTable[name])).toBeUndefined();
  }
});

test('the examples of serve and gate → valid settings', async () => {
  for (const example of [...commandTable.serve.examples, ...commandTable.gate.examples]) {
    const [, variables = '', name, flags = ''] = /^(.*?)portcullis (\w+) (.*)$/.exec(example) ?? [];
    const written = Object.fromEntries(variables.split(' ').flatMap((text) => (text === '' ? [] : [text.split('=')])));
    const read = name === 'gate' ? readGateSettings : readSettings;
    expect(read({ args: flags.split(' '), environment: written }).kind, example).toBe('settings');
  }
});

test.each([
  ['serve', '--custom-claim', '--rules'],
  ['gate', '--rules', '--docs'],
])('%s --help → no setting of another command; help settings → all', async (name, own, other) => {
  expect((await runCommand([name, '--help'], environment())).stdout).not.toContain(`  ${other},`);
  const { stdout } = await runCommand(['help', 'settings'], environment());
  for (const flag of [own, other]) expect(stdout).toContain(`  ${flag},`);
});

test('--help → every command in 80 columns', async () => {
  const { stdout } = await run(process.execPath, [main, '--help'], { env: environment() });
  for (const [name] of commands) expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'));
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
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

test('dev: a flag wins over a variable, and the local provider over ISSUER', async () => {
  const variables = { PORT: '0', ISSUER: 'https://idp.test/', ADMIN_PORT: 'off' };
  const ended = await runCommand(['dev', '--idp-port', '0', '--port', 'x'], { ...environment(), ...variables });
  expect(ended).toMatchObject({
    status: 78,
    stderr: 'portcullis: one setting is wrong\n  PORT: "x" is not valid. Set a number from 0 to 65535.\n',
  });
});

test('help rules → the help of that command', async () => {
  const { stdout } = await runCommand(['help', 'rules'], environment());
  expect(stdout).toMatch(/^Usage: portcullis rules check FILE/);
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
  [['rules', '--jsn', 'check'], 64, 'portcullis: there is no flag --jsn.'],
  [['revoke', '--help', '--sbu'], 64, 'portcullis: there is no flag --sbu.'],
  [['revoke', '--sub', '-secret'], 64, 'portcullis: --sub lacks its value.'],
  [['explain', '--server', 'http://a.test', '--jsn'], 64, 'portcullis: there is no flag --jsn. Did you mean --json?'],
])('%j → %i, and what was meant', async (words, code, text) => {
  const ended = await runCommand(words, environment());
  expect(ended).toMatchObject({ status: code, stderr: expect.stringContaining(text) });
  if (code === 64) expect(ended.stderr).not.toMatch(/^(Usage|Examples)|secret/m);
  if (code === 64 && words[0] !== 'serv')
    expect(ended.stderr).toMatch(new RegExp(`^Flags and examples: portcullis ${words[0]} --help\\n$`, 'm'));
  // The value behind a flag that does not exist is no second mistake.
  expect(ended.stderr).not.toContain('argument:');
});
