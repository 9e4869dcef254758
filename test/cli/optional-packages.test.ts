import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { useFolder } from '../support/folder.ts';

const { dependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
};

const names = ['oidc-provider', '@peculiar/x509'] as const;
const install = `npm install --save-dev ${names.map((name) => `${name}@${/\d+/.exec(String(peerDependencies[name]))}`).join(' ')}`;
const folder = realpathSync(useFolder());

// The build, with what it depends on beside it and nothing else: what npm installs for who asks for nothing more.
beforeAll(() => {
  if (!existsSync('dist/cli/main.js')) throw new Error('the build is missing; run: npm run build');
  cpSync('dist', join(folder, 'dist'), { recursive: true });
  cpSync('package.json', join(folder, 'package.json'));
  for (const name of Object.keys(dependencies)) addPackage(name);
});

function addPackage(name: string): string {
  const link = join(folder, 'node_modules', name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(resolve('node_modules', name), link);
  return link;
}

function run(...args: readonly string[]) {
  return runWith({}, ...args);
}

function runWith(more: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const environment = { ...more, PATH: process.env['PATH'], XDG_CACHE_HOME: join(folder, 'cache') };
  const main = join(folder, 'dist/cli/main.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    env: environment,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

it.each([
  [undefined, 0, ''],
  ['token.a == 1', 1, 'needs the package @bufbuild/cel. Install it with "npm install @bufbuild/cel".'],
])('a rules file with "when": %j, without the package of CEL → exit status %i', (when, expected, message) => {
  const file = join(folder, 'rules.json');
  const issuers = { a: { issuer: 'https://id.example/', audience: 'a' } };
  writeFileSync(file, JSON.stringify({ issuers, rules: [{ id: 'r', path: '/', when }] }));
  const { status, stderr } = run('rules', 'check', file);
  expect([status, stderr]).toEqual([expected, expect.stringContaining(message)]);
});

describe('without the optional packages of the local identity provider', () => {
  it('dev → says the one command that installs them', () => {
    expect(run('dev', '--port', '0', '--idp-port', '0')).toEqual({
      status: 69,
      stdout: '',
      stderr: `portcullis: The local identity provider needs two optional packages: ${install} installs them.\n`,
    });
  });

  it('dev with one of them → the same command', () => {
    const link = addPackage(names[0]);
    const { stderr } = run('dev', '--port', '0', '--idp-port', '0');
    rmSync(link);
    expect(stderr).toContain(install);
  });

  it('doctor without the client for Redis → redis_unreachable, and the command that installs it', () => {
    const settings = { IDP_DOMAIN: 'idp.example', IDP_AUDIENCE: 'urn:api', REPLAY_STORE: 'redis://127.0.0.1:1' };
    const { status, stdout } = runWith(settings, 'doctor', '--only', 'redis', '--json');
    expect(status).toBe(1);
    const { findings } = JSON.parse(stdout) as { readonly findings: readonly Readonly<Record<string, string>>[] };
    expect(findings.map(({ name }) => name)).toEqual(['redis_unreachable']);
    expect(findings[0]?.['fix']).toBe('npm install @redis/client');
  });

  it('config → needs none of them', () => {
    const { status, stdout } = run('config', '--domain', 'tenant.example.test', '--audience', 'urn:api');
    expect(status).toBe(0);
    expect(stdout).toContain('tenant.example.test');
  });
});
