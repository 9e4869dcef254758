import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { runCommand } from '../support/command-runs.ts';
import { enterConsole, makeKeyFolder, openConsole } from '../support/console-client.ts';
import { startDev } from '../support/dev-process.ts';
import { useFolder } from '../support/folder.ts';
import { send } from '../support/http-client.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { bearer, findVariant, openVariant } from '../support/variant-service.ts';

const cache = useFolder();
const entry = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Starts the command. Resolves when it reads decisions. */
async function watch(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [entry, 'watch', ...args], {
    env: { PATH: process.env['PATH'] ?? '', NO_COLOR: '1', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      texts[name] += chunk;
    });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await expect.poll(() => texts.stderr, { timeout: 10_000 }).toContain('as they happen');
  return {
    output: () => texts.stdout,
    problems: () => texts.stderr,
    ended,
    stop: () => void child.kill('SIGINT'),
  };
}

async function explain(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const { status: code, stdout, stderr } = await runCommand(['explain', ...args], { NO_COLOR: '1', ...environment });
  return { code, stdout, stderr };
}

describe('commands that read the console', async () => {
  const provider = await useTestProvider();
  const opened = await openConsole((environment) => openVariant(findVariant('a'), provider, environment));
  const { folder, admin } = opened;
  let { service } = opened;
  afterAll(async () => {
    await service.stop();
    await folder.close();
  });

  const call = async (aud: string): Promise<string> => {
    const answer = await send(service.url, '/api/private', { headers: bearer(await provider.sign({ aud })) });
    return answer.headers.get('x-request-id') ?? '';
  };

  const withKey = () => ({ CONSOLE_KEY_FILE: folder.file });
  const ask = (id: string, ...args: readonly string[]) => explain(['--id', id, '--admin', admin, ...args], withKey());

  it('explain, a call that was just refused → its reason, its cause, every check', async () => {
    for (let times = 0; times < 2; times++) {
      const { code, stdout } = await ask(await call('https://api.example.test'));
      expect(code).toBe(1);
      expect(stdout).toMatch(/^refused: invalid_audience/);
      expect(stdout).toContain('IDP_AUDIENCE=https://api.example.test');
      expect(stdout).toMatch(/^signature +ok/m);
    }
  });

  it("an id that only the caller has chosen → explained, with the service's own id on stderr", async () => {
    const chosen = 'chosen-by-the-caller';
    const answer = await send(service.url, '/api/private', { headers: ['X-Request-Id', chosen] });
    const own = answer.headers.get('x-request-id') ?? '';
    const found = await ask(chosen);
    expect(found.stdout).toMatch(/^refused: missing_credentials/);
    expect(found.stderr).toBe(
      `portcullis: found by the X-Request-Id that the caller chose, which another request can have too. The service's own id is ${own}.\n`,
    );
    expect((await ask(own)).stderr).toBe('');
  });

  it('--console-key-file → no variable is needed; without --admin, the port of the settings', async () => {
    const args = ['--id', await call('urn:other'), '--console-key-file', folder.file];
    for (const more of [
      ['--admin', admin],
      ['--admin-port', new URL(admin).port],
    ]) {
      const { code, stdout } = await explain([...args, ...more], {});
      expect([code, stdout]).toEqual([1, expect.stringMatching(/^refused: invalid_audience/)]);
    }
    // The file of the flag, not the file of the variable.
    const { code, stderr } = await ask('a', '--console-key-file', '/nowhere/at/all');
    expect([code, stderr]).toEqual([64, expect.stringContaining('there is no key')]);
    expect((await explain([...args, '--admin-port', 'off'], {})).code).toBe(64);
    expect((await explain([...args, '--port', 'x'], {})).stderr).toContain('the settings are not valid');
  });

  it('--json and --expect → as without --id', async () => {
    const id = await call('urn:other');
    const { code, stdout } = await ask(id, '--json', '--expect', 'invalid_audience');
    expect(code).toBe(0);
    const expected = { version: 1, verdict: 'refused', reason: 'invalid_audience', status: 401 };
    expect(JSON.parse(stdout)).toMatchObject(expected);
  });

  it.each([
    ['--admin without an id', ['--admin', 'ADMIN'], /--admin needs --id/],
    ['a call that is not known', ['--id', 'nothing', '--admin', 'ADMIN'], /does not know this request/],
    ['what is no id', ['--id', '../state', '--admin', 'ADMIN'], /write the X-Request-Id/],
    ['another host: the key would leave this one', ['--id', 'a', '--admin', 'http://example.com:9464'], /on this host/],
    ['a port where nobody listens', ['--id', 'a', '--admin', 'http://127.0.0.1:9'], /no response/],
  ])('%s → 64, and why', async (_, args, problem) => {
    const given = args.map((arg) => (arg === 'ADMIN' ? admin : arg));
    const { code, stderr } = await explain(given, withKey());
    expect([code, stderr]).toEqual([64, expect.stringMatching(problem)]);
  });

  it('without the key, or with another one → 64', async () => {
    const other = await makeKeyFolder();
    const without = await explain(['--id', 'a', '--admin', admin], { CONSOLE_KEY_FILE: other.file });
    expect([without.code, without.stderr]).toEqual([64, expect.stringContaining('there is no key')]);
    await writeFile(other.file, 'x'.repeat(43));
    const wrong = await explain(['--id', 'a', '--admin', admin], { CONSOLE_KEY_FILE: other.file });
    expect([wrong.code, wrong.stderr]).toEqual([64, expect.stringContaining('refuses the key')]);
    await other.close();
  });

  it('a service whose console is off → 64', async () => {
    const plain = await openVariant(findVariant('a'), provider);
    onTestFinished(async () => void (await plain.stop()));
    const { code, stderr } = await explain(['--id', 'a', '--admin', plain.adminUrl ?? ''], withKey());
    expect([code, stderr]).toEqual([64, expect.stringContaining('CONSOLE=on')]);
  });

  it('watch, a refusal → reason, expected and seen value, fix; earlier and admitted requests are not printed', async () => {
    const earlier = await call('urn:earlier');
    // It arrives in the console shortly after its response.
    const arrived = await fetch(`${admin}/console/api/decisions/${earlier}`, {
      headers: { authorization: `Bearer ${await folder.readKey()}` },
    });
    expect(arrived.status).toBe(200);
    const watching = await watch(['--admin', admin], { CONSOLE_KEY_FILE: folder.file });
    await send(service.url, '/api/public');
    const id = await call('https://api.example.test');
    await expect.poll(watching.output, { timeout: 5000 }).toContain('\n\n');
    const [first = '', second] = watching.output().split('\n');
    expect(first).toMatch(new RegExp(`^\\d{4}-\\S+Z {2}401 GET /api/private {2}id ${id}$`));
    expect(second).toMatch(/^refused: invalid_audience/);
    expect(watching.output()).toMatch(/^ {2}aud is +https:\/\/api\.example\.test/m);
    expect(watching.output()).toMatch(/^ {2}expects +\S/m);
    expect(watching.output()).toMatch(/^ {2}fix +IDP_AUDIENCE=https:\/\/api\.example\.test/m);
    expect(watching.output()).not.toMatch(new RegExp(`${earlier}|/api/public|eyJ`));
    watching.stop();
    expect(await watching.ended).toBe(0);
  });

  it.each([
    [['--admin', 'https://api.example'], /admin: write the URL of the admin listener on this host/],
    [['--admin', 'http://127.0.0.1:1', '--console-key-file', 'FILE'], /no response/],
    [['--admin', 'ADMIN', '--console-key-file', '/dev/null'], /there is no key/],
    [['--admn', 'x'], /Did you mean --admin\?/],
    [[], /no running portcullis dev/],
  ])('watch %j → 64', async (args, problem) => {
    const values = { ADMIN: admin, FILE: folder.file };
    const given = args.map((arg) => values[arg as keyof typeof values] ?? arg);
    const { status, stderr } = await runCommand(['watch', ...given], { XDG_CACHE_HOME: '/nonexistent', NO_COLOR: '1' });
    expect([status, stderr]).toEqual([64, expect.stringMatching(problem)]);
  });

  it('watch --json, a browser opens the console, then the service restarts with a new key → reported, reconnected, later refusals are printed; a signal while it is stopped → 0', async () => {
    const watching = await watch(['--admin', admin, '--console-key-file', folder.file, '--json'], {});
    const printed = (): readonly string[] =>
      [...watching.output().matchAll(/^.+$/gm)].map(([line]) => String(JSON.parse(line).id));
    await enterConsole(admin, await folder.readKey());
    const before = await call('urn:before');
    await expect.poll(printed, { timeout: 5000 }).toEqual([before]);
    expect(JSON.parse(watching.output())).toMatchObject({
      reason: 'invalid_audience',
      route: '/api/private',
      fix: expect.stringMatching(/\w/),
    });
    await service.stop();
    await expect.poll(watching.problems, { timeout: 5000 }).toContain('the service has stopped');
    await expect.poll(watching.problems, { timeout: 10_000 }).toContain('Reconnecting: admin: there is no key');
    const port = { ADMIN_PORT: new URL(admin).port };
    service = await openVariant(findVariant('a'), provider, { ...folder.environment, ...port });
    // Printed although it comes before the new connection.
    const between = await call('urn:between');
    await expect.poll(watching.problems, { timeout: 40_000 }).toContain(`Connected again to ${admin}`);
    const after = await call('urn:after');
    await expect.poll(printed, { timeout: 5000 }).toEqual([before, between, after]);
    const reported = watching.problems().length;
    await service.stop();
    await expect.poll(() => watching.problems().slice(reported), { timeout: 10_000 }).toContain('Reconnecting: admin');
    watching.stop();
    expect(await watching.ended).toBe(0);
  });
});

it('next to dev, without any setting → the key in the cache folder; watch finds the next dev on other ports', async () => {
  const own = { XDG_CACHE_HOME: cache };
  let dev = await startDev([], own);
  try {
    const watching = await watch([], own);
    await send(dev.url, '/api/private');
    await expect.poll(watching.output, { timeout: 5000 }).toContain('refused: missing_credentials');
    const { headers } = await send(dev.url, '/api/private', { headers: bearer('undefined') });
    const environment = { ...dev.environment, ...own };
    const explained = await explain(['--id', headers.get('x-request-id') ?? '', '--admin', dev.adminUrl], environment);
    expect(explained).toMatchObject({ code: 1, stdout: expect.stringContaining('a placeholder, not a token') });
    await dev.stop();
    dev = await startDev([], own);
    await expect
      .poll(watching.problems, { timeout: 40_000 })
      .toContain(`Connected again to ${new URL(dev.adminUrl).origin}`);
    await send(dev.url, '/api/private');
    await expect.poll(watching.output, { timeout: 5000 }).toMatch(/(?:^refused: missing_credentials[\s\S]*){2}/m);
    watching.stop();
    expect(await watching.ended).toBe(0);
  } finally {
    await dev.stop();
  }
});
