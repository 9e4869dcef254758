import { writeFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runCommand } from '../support/command-runs.ts';
import { makeKeyFolder, useConsole } from '../support/console-client.ts';
import { startDev } from '../support/dev-process.ts';
import { send } from '../support/http-client.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { bearer, findVariant, openVariant } from '../support/variant-service.ts';

async function explain(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const { status: code, stdout, stderr } = await runCommand(['explain', ...args], { NO_COLOR: '1', ...environment });
  return { code, stdout, stderr };
}

describe('explain --id ID --admin URL', async () => {
  const provider = await useTestProvider();
  const { folder, service, admin } = await useConsole((environment) =>
    openVariant(findVariant('a'), provider, environment),
  );

  const refuse = async (aud: string): Promise<string> => {
    const answer = await send(service.url, '/api/private', { headers: bearer(await provider.sign({ aud })) });
    return answer.headers.get('x-request-id') ?? '';
  };
  const withKey = () => ({ CONSOLE_KEY_FILE: folder.file });
  const ask = (id: string, ...args: readonly string[]) => explain(['--id', id, '--admin', admin, ...args], withKey());

  it('a call that was just refused: its reason, its cause, every check', async () => {
    for (let times = 0; times < 2; times++) {
      const { code, stdout } = await ask(await refuse('https://api.example.test'));
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
    const args = ['--id', await refuse('urn:other'), '--console-key-file', folder.file];
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
    const id = await refuse('urn:other');
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

  it('dev, without any setting: it leaves the key in the cache folder', async () => {
    const dev = await startDev();
    onTestFinished(async () => void (await dev.stop()));
    const answer = await send(dev.url, '/api/private', { headers: bearer('undefined') });
    const id = answer.headers.get('x-request-id') ?? '';
    const { code, stdout } = await explain(['--id', id, '--admin', dev.adminUrl], dev.environment);
    expect([code, stdout]).toEqual([1, expect.stringContaining('a placeholder, not a token')]);
  });
});
