import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/server/lifecycle/exit.ts';
import { useFolder } from '../support/folder.ts';
import { send } from '../support/http-client.ts';
import { needs, requireProgram } from '../support/programs.ts';
import { startService } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { bearer, findVariant, readEnvironment } from '../support/variant-service.ts';

const run = promisify(execFile);
const unit = 'deploy/systemd/portcullis.service';
const text = await readFile(unit, 'utf8');
const template = await readFile('deploy/systemd/portcullis@.service', 'utf8');
/** The values of a setting of the unit. */
const valuesOf = (name: string): readonly string[] =>
  [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

/** The members of each group of system calls, which may be groups. */
async function readGroups(): Promise<ReadonlyMap<string, readonly string[]>> {
  const { stdout } = await run(requireProgram('systemd-analyze'), ['syscall-filter']);
  const groups = stdout.split(/^(?=@)/m).map((text) => text.match(/^@[\w-]+|(?<=^ {4})[@\w-]+$/gm) ?? []);
  return new Map(groups.map(([name = '', ...members]) => [name, members]));
}

/** The system calls that the unit permits. systemd adds @default to each list, and `~` removes (systemd.exec(5)). */
async function readPermittedCalls(): Promise<readonly string[]> {
  const groups = await readGroups();
  const expand = (name: string): readonly string[] =>
    name.startsWith('@') ? (groups.get(name) ?? []).flatMap(expand) : [name];
  const permitted = new Set(expand('@default'));
  for (const value of valuesOf('SystemCallFilter')) {
    const calls = value.replace(/^~/, '').split(' ').flatMap(expand);
    for (const call of calls) value.startsWith('~') ? permitted.delete(call) : permitted.add(call);
  }
  return [...permitted];
}

describe('the unit for systemd', needs('systemd-analyze'), () => {
  const folder = useFolder();

  it('is valid, and so is its socket', async () => {
    await cp('deploy/systemd', folder, { recursive: true });
    // The program is not installed at the path of the unit; a replacement allows to check the other settings.
    const write = (name: string, unit: string) =>
      writeFile(join(folder, name), unit.replace(/^ExecStart=.*$/m, 'ExecStart=/bin/true'));
    await write('portcullis.service', text);
    await write('portcullis@.service', template);
    const files = ['portcullis.service', 'portcullis.socket', 'portcullis@8001.service'];
    const paths = files.map((name) => join(folder, name));
    const { stderr } = await run(requireProgram('systemd-analyze'), ['verify', ...paths]);
    expect(stderr.split('\n').filter((line) => line.includes('portcullis'))).toEqual([]);
  });

  it('the template → the unit, with a port, an admin port and files of the instance', () => {
    const own = template
      .replace(/^# \/etc[\s\S]*?(?=\[Unit\])/, '')
      .replace(/^Environment=(?!KEYS_CACHE)[^\n]*\n/gm, '');
    expect(own.replaceAll('portcullis-%i', 'portcullis')).toBe(text.replace(/^# \/etc[\s\S]*?(?=\[Unit\])/, ''));
    expect(template).toContain('\nEnvironment=PORT=%i ADMIN_PORT=1%i\n');
  });

  it.each([unit, 'deploy/systemd/portcullis@.service'])(
    '%s gives the service few rights: exposure below 2 of 10',
    async (file) => {
      const { stdout } = await run(requireProgram('systemd-analyze'), ['security', '--offline=true', file]);
      const level = Number(/exposure level for \S+: (\d+\.\d+)/.exec(stdout)?.[1]);
      expect(level).toBeLessThan(2);
    },
  );
});

const provider = await useTestProvider();

describe('the system calls that the unit permits', needs('systemd-analyze', 'python3'), () => {
  const folder = useFolder();
  const filtered = async (...program: readonly string[]): Promise<readonly string[]> => {
    const launcher = fileURLToPath(new URL('../support/with-filter.py', import.meta.url));
    return [requireProgram('python3'), launcher, JSON.stringify(await readPermittedCalls()), ...program];
  };

  it('a call that it does not permit (setpriority) → SIGSYS', async () => {
    const [python = '', ...args] = await filtered('/bin/sh', '-c', 'echo runs; exec nice -n 1 true');
    await expect(run(python, args)).rejects.toMatchObject({ signal: 'SIGSYS', stdout: 'runs\n' });
  });

  it('serve with two processes and keys on disk → a token is accepted, SIGHUP does not end it, SIGTERM ends it with 0', async () => {
    const own = { WORKERS: '2', KEYS_CACHE: join(folder, 'keys.json') };
    const service = await startService({
      runtime: await filtered(process.execPath),
      environment: { ...readEnvironment(findVariant('b'), provider), ...own },
    });
    const headers = bearer(await provider.sign());
    expect((await send(service.url, '/api/private', { headers })).status).toBe(200);
    service.signal('SIGHUP');
    expect((await send(service.adminUrl ?? '', '/metrics')).status).toBe(200);
    expect(await service.stop()).toBe(0);
    expect(service.stderr).toBe('');
    expect(await readFile(join(folder, 'keys.json'), 'utf8')).toContain(provider.kid);
  });
});

describe('starts after a failure', () => {
  const seconds = (name: string, byDefault: number): number => Number(valuesOf(name)[0] ?? byDefault);

  it('a provider that is unreachable at startup, however long (69) → the limit for starts is never reached', () => {
    // The defaults of systemd: five starts within 10 s, 0.1 s after each end.
    const interval = seconds('StartLimitIntervalSec', 10);
    const fastest = seconds('StartLimitBurst', 5) * seconds('RestartSec', 0.1);
    expect(interval === 0 || fastest >= interval).toBe(true);
    expect(seconds('RestartSec', 0.1)).toBeGreaterThanOrEqual(1);
    expect(valuesOf('Restart')).toEqual(['on-failure']);
  });

  it('a wrong flag, wrong settings → no further start; an unreachable provider → another one', () => {
    const final = valuesOf('RestartPreventExitStatus').join(' ').split(' ').map(Number);
    expect(final.toSorted()).toEqual([exitCodes.usage, exitCodes.config]);
  });
});

it('the files of secrets that the documentation names → those that systemd passes to the service', async () => {
  const page = await readFile('docs/operations.md', 'utf8');
  const [[, id = '', folder = ''] = []] = valuesOf('LoadCredential').map(
    (value) => /^(\w+):(\/\S+)$/.exec(value) ?? [],
  );
  const name = 'dpop_nonce';
  expect(page).toContain(`${folder}/${name}`);
  expect(page).toContain(`DPOP_NONCE_SECRET_FILE=/run/credentials/portcullis.service/${id}_${name}`);
  expect(valuesOf('DynamicUser')).toEqual(['yes']);
});
