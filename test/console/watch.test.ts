import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/command-runs.ts';
import { enterConsole, type KeyFolder, makeKeyFolder } from '../support/console-client.ts';
import { startDev } from '../support/dev-process.ts';
import { useFolder } from '../support/folder.ts';
import { send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { bearer, findVariant, openVariant } from '../support/variant-service.ts';

const cache = useFolder();
const entry = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface Watching {
  readonly output: () => string;
  readonly problems: () => string;
  readonly ended: Promise<number | null>;
  stop(): void;
}

/** Starts the command. Resolves when it reads decisions. */
async function watch(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<Watching> {
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

describe('watch --admin URL', async () => {
  const provider = await useTestProvider();
  let folder: KeyFolder;
  let service: OpenedService;
  let admin: string;

  beforeAll(async () => {
    folder = await makeKeyFolder();
    service = await openVariant(findVariant('a'), provider, folder.environment);
    admin = service.adminUrl ?? '';
  });
  afterAll(async () => {
    await service.stop();
    await folder.close();
  });

  const call = async (aud: string): Promise<string> => {
    const answer = await send(service.url, '/api/private', { headers: bearer(await provider.sign({ aud })) });
    return answer.headers.get('x-request-id') ?? '';
  };

  it('refusal → reason, expected and seen value, fix; earlier and admitted requests are not printed', async () => {
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

  it('a browser opens the console → the command reads on', async () => {
    const watching = await watch(['--admin', admin, '--console-key-file', folder.file, '--json'], {});
    await enterConsole(admin, await folder.readKey());
    await send(service.url, '/api/private');
    await expect.poll(watching.output, { timeout: 5000 }).toContain('\n');
    expect(JSON.parse(watching.output())).toMatchObject({
      reason: 'missing_credentials',
      route: '/api/private',
      fix: expect.stringMatching(/\w/),
    });
    watching.stop();
    expect(await watching.ended).toBe(0);
  });

  it.each([
    [['--admin', 'https://api.example'], /admin: write the URL of the admin listener on this host/],
    [['--admin', 'http://127.0.0.1:1', '--console-key-file', 'FILE'], /no response/],
    [['--admin', 'ADMIN', '--console-key-file', '/dev/null'], /there is no key/],
    [['--admn', 'x'], /Did you mean --admin\?/],
    [[], /no running portcullis dev/],
  ])('%j → 64', async (args, problem) => {
    const values = { ADMIN: admin, FILE: folder.file };
    const given = args.map((arg) => values[arg as keyof typeof values] ?? arg);
    const { status, stderr } = await runCommand(['watch', ...given], { XDG_CACHE_HOME: '/nonexistent', NO_COLOR: '1' });
    expect([status, stderr]).toEqual([64, expect.stringMatching(problem)]);
  });

  it('service restarts with a new key → reported, reconnected, later refusals are printed', async () => {
    const watching = await watch(['--admin', admin, '--json'], { CONSOLE_KEY_FILE: folder.file });
    const printed = (): readonly string[] =>
      [...watching.output().matchAll(/^.+$/gm)].map(([line]) => String(JSON.parse(line).id));
    const before = await call('urn:before');
    await expect.poll(printed, { timeout: 5000 }).toEqual([before]);
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
    watching.stop();
    expect(await watching.ended).toBe(0);
  });

  it('signal while the service is stopped → 0', async () => {
    const watching = await watch(['--admin', admin], { CONSOLE_KEY_FILE: folder.file });
    await service.stop();
    await expect.poll(watching.problems, { timeout: 10_000 }).toContain('Reconnecting: admin');
    watching.stop();
    expect(await watching.ended).toBe(0);
  });
});

it('watch next to dev → finds it, with its key, and the next one on other ports', async () => {
  const own = { XDG_CACHE_HOME: cache };
  let dev = await startDev([], own);
  try {
    const watching = await watch([], own);
    await send(dev.url, '/api/private');
    await expect.poll(watching.output, { timeout: 5000 }).toContain('refused: missing_credentials');
    await dev.stop();
    dev = await startDev([], own);
    await expect
      .poll(watching.problems, { timeout: 40_000 })
      .toContain(`Connected again to ${new URL(dev.adminUrl).origin}`);
    await send(dev.url, '/api/private');
    await expect.poll(() => watching.output().match(/^refused: /gm), { timeout: 5000 }).toHaveLength(2);
    watching.stop();
    expect(await watching.ended).toBe(0);
  } finally {
    await dev.stop();
  }
});
