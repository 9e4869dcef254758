import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { runCommand } from '../../src/cli/commands/run.ts';
import { findFreePort, listen, stop } from '../../tools/shared/network.js';
import { useFolder } from '../support/folder.ts';
import { useOutput } from '../support/own-output.ts';
import { needs } from '../support/programs.ts';

// Lets a test find the process that `runDev` starts.
vi.mock('node:child_process', async (load) => {
  const original = await load<typeof import('node:child_process')>();
  return { ...original, spawn: vi.fn(original.spawn) };
});

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const run = promisify(execFile);
const ended = 'Stop with Ctrl-C.';
const base = useFolder();
const environment: NodeJS.ProcessEnv = { PATH: process.env['PATH'], XDG_CACHE_HOME: base };

beforeAll(() => {
  if (!existsSync(main)) throw new Error('the build is missing; run: npm run build');
});

/** A printed request and its expected response. */
type Announced = Readonly<{ path: string; status: number; description: string; command: string }>;

function readAnnounced(output: string): readonly Announced[] {
  return [...output.matchAll(/^# (\S+), .*?: (\d+) ?(.*)\n(curl .*?(?:\\\n.*)?)$/gm)].map(
    ([, path = '', status, description = '', command = '']) => ({ path, status: Number(status), description, command }),
  );
}

/** Runs a printed command in a shell. */
async function paste(command: string): Promise<{ readonly status: number; readonly body: string }> {
  const portcullis = command.replaceAll('npx portcullis', `'${process.execPath}' '${main}'`);
  const { stdout } = await run('sh', ['-c', `${portcullis} -sS --noproxy '*'`], { env: environment });
  const [head = '', body = ''] = stdout.split('\r\n\r\n', 2);
  return { status: Number(head.split(' ', 2)[1]), body };
}

async function expectAsAnnounced(output: string): Promise<void> {
  const announced = readAnnounced(output);
  const answers = await Promise.all(announced.map(({ command }) => paste(command)));
  for (const [at, { status, description }] of announced.entries())
    expect(answers[at]).toMatchObject({ status, body: expect.stringContaining(description) });
}

/** Opens a port until the end of the test. */
async function serve(listener?: RequestListener): Promise<number> {
  const server = createServer(listener);
  onTestFinished(() => stop(server));
  return listen(server);
}

const statuses = {
  a: ['/api/public 200', '/api/private 401', '/api/private 200', '/api/private-scoped 401', '/api/private-scoped 403'],
  b: ['/api/public 200', '/api/private 401', '/api/private 200', '/api/private-scoped 401', '/api/private-scoped 401'],
} as const;

describe('as a command', () => {
  const children: ChildProcess[] = [];
  async function stopChildren(): Promise<void> {
    for (const child of children.splice(0)) {
      child.kill('SIGTERM');
      if (child.exitCode === null) await new Promise((resolve) => child.once('exit', resolve));
    }
  }

  async function start(args: readonly string[]) {
    const child = spawn(process.execPath, [main, 'dev', '--port', '0', '--idp-port', '0', ...args], {
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true, // a group of its own, as a shell makes one
    });
    children.push(child);
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
    let output = '';
    await new Promise<void>((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.includes(ended)) resolve();
      });
      child.once('exit', () => resolve());
    });
    const issuer = /^Identity provider {2}(\S+)$/m.exec(output)?.[1] ?? '';
    const end = async (): Promise<void> => {
      child.kill('SIGTERM');
      expect(await exited).toBe(0);
    };
    return { child, exited, output, issuer, end };
  }

  test(
    '--upstream → gate in front of a server: 401 without a token, its response with one',
    needs('curl'),
    async () => {
      const port = await serve(({ headers }, outgoing) => void outgoing.end(`hello ${headers['x-auth-client']}`));
      const { output, end } = await start(['--upstream', `http://127.0.0.1:${port}`]);
      const [refused = '', passed = ''] = [...output.matchAll(/^curl .*?(?:\\\n.*)?$/gm)].map(([command]) => command);
      expect((await paste(refused)).status).toBe(401);
      expect(await paste(passed)).toMatchObject({ status: 200, body: expect.stringMatching(/^hello \S+$/) });
      await end();
    },
  );

  test('--rules → the gate with these rules: the scope of a token decides', async () => {
    const port = await serve((_incoming, outgoing) => void outgoing.end('hello'));
    const idpPort = await findFreePort();
    const issuer = `https://localhost:${idpPort}/`;
    const file = join(base, 'rules.dev.json');
    const rules = {
      issuers: { local: { issuer, audience: 'https://api.portcullis.example/' } },
      upstreams: { orders: `http://127.0.0.1:${port}` },
      rules: [{ id: 'orders', path: '/orders/**', scopes: ['read:orders'], upstream: 'orders' }],
    };
    await writeFile(file, JSON.stringify(rules));
    const { output, end } = await start(['--rules', file, '--idp-port', String(idpPort)]);
    const [, url = ''] = /^Gate +(\S+)$/m.exec(output) ?? [];
    expect(output).toMatch(/^Rules +\S+rules\.dev\.json$/m);
    expect(output).toContain('# /, token: as the rules decide');
    expect(output).not.toContain('Warning');
    expect(output).not.toContain('"reason"');
    const call = async (...args: readonly string[]) => {
      const bearer = `Bearer ${await token('--idp', issuer, ...args)}`;
      return (await fetch(new URL('/orders/1', url), { headers: { authorization: bearer } })).status;
    };
    expect(await call('--scope', 'read:orders')).toBe(200);
    expect(await call('--scope', 'read:messages')).toBe(403);
    await end();
  });

  test('--rules for another audience → a line with both audiences and --audience, which helps', async () => {
    const idpPort = await findFreePort();
    const issuer = `https://localhost:${idpPort}/`;
    const port = await serve((_incoming, outgoing) => void outgoing.end());
    const file = join(base, 'rules.other.json');
    const audience = 'https://orders.example/';
    const rules = { issuers: { local: { issuer, audience } }, rules: [{ id: 'orders', path: '/**' }] };
    await writeFile(file, JSON.stringify(rules));
    const args = ['--rules', file, '--idp-port', String(idpPort), '--upstream', `http://127.0.0.1:${port}`];
    const first = await start(args);
    const decide = async (output: string) => {
      const [, url = ''] = /^Gate +(\S+)$/m.exec(output) ?? [];
      const authorization = `Bearer ${await token('--idp', issuer)}`;
      return (await fetch(url, { headers: { authorization } })).status;
    };
    const warning =
      /^Warning: .* https:\/\/api\.portcullis\.example\/, .* https:\/\/orders\.example\/\. .*(--audience \S+)$/m;
    const [, flag = ''] = warning.exec(first.output) ?? [];
    expect(await decide(first.output)).toBe(401);
    await first.end();
    const second = await start([...args, ...flag.split(' ')]);
    expect(second.output).not.toContain('Warning');
    expect(await decide(second.output)).toBe(200);
    await second.end();
  });

  const token = async (...args: readonly string[]) =>
    (await run(process.execPath, [main, 'token', ...args], { env: environment })).stdout.trim();

  describe('started anew for each', needs('curl'), () => {
    afterEach(stopChildren);

    test('both variants at once → every printed request gets the printed response; tokens of one are refused by the other', async () => {
      const [a, b] = await Promise.all([start([]), start(['--variant', 'b'])]);
      for (const [{ output }, expected] of [[a, statuses.a] as const, [b, statuses.b] as const]) {
        const announced = readAnnounced(output);
        expect(announced.map(({ path, status }) => `${path} ${status}`)).toEqual([
          ...expected,
          '/api/private-scoped 200',
        ]);
        expect(output).toContain('for development only');
        await expectAsAnnounced(output);
      }
      // Without settings `explain` finds the service that goes with the token, whichever was started last.
      const explain = `"${process.execPath}" "${main}" token --idp ${b.issuer} | "${process.execPath}" "${main}" explain`;
      // Its cutoffs are in the memory of the service: all other checks pass, status 69.
      const undecided = await run('sh', ['-c', explain], { env: environment }).catch((error) => error);
      expect(undecided).toMatchObject({
        code: 69,
        stdout: expect.stringMatching(/^undecided\n[\s\S]*only the service/),
      });
      const own = await token('--idp', a.issuer, '--scope', 'read:messages');
      const foreign = await token('--idp', b.issuer, '--scope', 'read:messages');
      const { command = '' } = readAnnounced(a.output).at(-1) ?? {};
      expect((await paste(command.replace(/\\\n.*"$/, `${own}"`))).status).toBe(200);
      expect((await paste(command.replace(/\\\n.*"$/, `${foreign}"`))).status).toBe(401);
    });

    test.each([
      ['SIGINT', 'SIGINT', 1],
      ['SIGTERM', 'SIGTERM', 1],
      ['Ctrl-C, which reaches the whole group', 'SIGINT', -1],
    ] as const)('%s → service and provider stop, status 0, and leave no file', async (_name, signal, sign) => {
      const { child, exited, output } = await start([]);
      const [{ command = '' } = {}] = readAnnounced(output);
      expect((await paste(command)).status).toBe(200);
      process.kill(sign * Number(child.pid), signal);
      expect(await exited).toBe(0);
      await expect(paste(command)).rejects.toThrow('Failed to connect');
      expect(await readdir(join(base, 'portcullis', 'running'))).toEqual([]);
    });
  });

  describe('one for all', needs('curl'), () => {
    let output: string;
    beforeAll(async () => {
      ({ output } = await start([]));
    });
    afterAll(stopChildren);

    test('printed documentation → its OpenAPI document has the service and the provider', async () => {
      const [, docs = ''] = /^Documentation +(\S+\/docs)$/m.exec(output) ?? [];
      expect((await fetch(docs)).status).toBe(200);
      const document = await (await fetch(new URL('openapi.json', docs))).json();
      const issuer = /^Identity provider {2}(\S+)$/m.exec(output)?.[1] ?? '';
      const openIdConnectUrl = `${issuer}.well-known/openid-configuration`;
      expect(document).toMatchObject({
        servers: [{ url: new URL(docs).origin }],
        components: { securitySchemes: { Provider: { type: 'openIdConnect', openIdConnectUrl } } },
      });
    });
  });
});

describe('in this process', () => {
  let announced: Promise<void>;
  let tell = () => {};
  const printed = useOutput((text) => {
    if (text.includes(ended)) tell();
  });

  beforeEach(() => {
    announced = new Promise((resolve) => {
      tell = resolve;
    });
  });

  const dev = (args: readonly string[], extra: NodeJS.ProcessEnv = {}) =>
    runCommand('dev', ['--idp-port', '0', ...args], { ...environment, PORT: '0', ...extra });

  test.each([[['--nope']], [['positional']], [['--port']], [['--idp-port', 'x']], [['--idp-port', '123456']]])(
    '%j → 64 and where the help is',
    async (args) => {
      expect(await dev(args)).toBe(64);
      expect(printed.stderr).toMatch(/^portcullis: .*\.\nFlags and examples: portcullis dev --help\n$/);
    },
  );

  test.each<[string, readonly string[], NodeJS.ProcessEnv, string]>([
    ['unknown variant', ['--variant', 'c'], {}, 'VARIANT'],
    ['bad port', ['--port', '70000'], {}, 'PORT'],
    ['bad setting in the environment', [], { CLOCK_TOLERANCE: 'abc' }, 'CLOCK_TOLERANCE'],
  ])('%s → 78 and the name of the setting', async (_name, args, extra, name) => {
    expect(await dev(args, extra)).toBe(78);
    expect(printed.stderr).toContain(name);
    expect(await readdir(join(base, 'portcullis', 'running'))).toEqual([]);
  });

  test('production → 1, nothing is started', async () => {
    expect(await dev([], { NODE_ENV: 'production' })).toBe(69);
    expect(printed.stderr).toContain('development only');
  });

  test('ports in use → 69, and the flag of the port of the provider', async () => {
    const port = await serve();
    expect(await dev(['--port', String(port)])).toBe(69);
    expect(printed.stdout).toBe('');
    expect(await dev(['--idp-port', String(port)])).toBe(69);
    expect(printed.stderr).toMatch(new RegExp(`Port ${port} of the local identity provider is in use.*--idp-port`));
  });

  test('service that cannot start → its own status, and no announcement', async () => {
    expect(await dev([], { ADMIN_PORT: String(await serve()), ADMIN_HOST: '127.0.0.1' })).toBe(69);
    expect(printed.stdout).toBe('');
  });

  test('error of the file system → passed on', async () => {
    const port = await findFreePort();
    await mkdir(join(base, 'portcullis', 'running', `${port}.json`), { recursive: true });
    await expect(dev(['--idp-port', String(port)])).rejects.toMatchObject({ code: 'EISDIR' });
    await rm(join(base, 'portcullis', 'running', `${port}.json`), { recursive: true });
  });

  test('settings of the environment → applied by the service and by the printed requests', needs('curl'), async () => {
    const extra = {
      HOST: 'localhost',
      ADMIN_PORT: 'off',
      DPOP_REQUIRED: 'true',
      CUSTOM_CLAIM: 'claim',
      HTTPS_PROXY: 'http://127.0.0.1:1',
      NO_PROXY: 'example.com',
      VARIANT: 'a',
    };
    const status = dev(['--audience', 'my api'], extra);
    await Promise.race([announced, status]);
    expect(printed.stdout).toMatch(/^Admin +off$/m);
    expect(readAnnounced(printed.stdout).map((call) => call.status)).toEqual([200, 401, 401, 401, 401, 401]);
    await expectAsAnnounced(printed.stdout);
    process.emit('SIGHUP');
    expect(await status).toBe(0);
  });

  test('terminal → console link with its key on the last line; the file has the key', async () => {
    const isTTY = Object.getOwnPropertyDescriptor(process.stdout, 'isTTY');
    Object.defineProperty(process.stdout, 'isTTY', { value: true, configurable: true });
    try {
      const status = dev([]);
      await Promise.race([announced, status]);
      const [, file = '', link = ''] =
        /^ {2}console key +(\S+)[\s\S]*^(\S+\/console\?key=[\w-]{43})$/m.exec(printed.stdout) ?? [];
      expect(printed.stdout.trimEnd().split('\n').at(-1)).toBe(link);
      // A path or a URL is one word, which cannot be broken.
      const isWord = (line: string): boolean => /^(?: {0,2}[\w ]{1,17} )? *\S+$/.test(line);
      expect(printed.stdout.split('\n').filter((line) => line.length > 80 && !isWord(line))).toEqual([]);
      expect(printed.stdout).toContain('$(npx portcullis token');
      expect(printed.stdout).not.toMatch(/\bey[\w-]+\.[\w-]+\./);
      expect((await fetch(link)).status).toBe(200);
      expect(link).toBe(link.replace(/=.*/, `=${(await readFile(file, 'utf8')).trim()}`));
      process.emit('SIGHUP');
      expect(await status).toBe(0);
    } finally {
      if (isTTY === undefined) Reflect.deleteProperty(process.stdout, 'isTTY');
      else Object.defineProperty(process.stdout, 'isTTY', isTTY);
    }
  });

  test('proxy in the environment → not between the service and the provider', needs('curl'), async () => {
    const status = dev([], { HTTPS_PROXY: 'http://127.0.0.1:1', HTTP_PROXY: 'http://127.0.0.1:1' });
    await Promise.race([announced, status]);
    const { command = '' } = readAnnounced(printed.stdout).at(-1) ?? {};
    expect((await paste(command)).status).toBe(200);
    process.emit('SIGHUP');
    expect(await status).toBe(0);
  });

  test('service that is killed → 1, and the provider stops', async () => {
    const status = dev([]);
    await Promise.race([announced, status]);
    const service = vi.mocked(spawn).mock.results.at(-1);
    if (service?.type !== 'return') throw new Error('No service was started.');
    service.value.kill('SIGKILL');
    expect(await status).toBe(1);
    expect(await readdir(join(base, 'portcullis', 'running'))).toEqual([]);
  });
});
