import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { basename, delimiter, join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { type NamedIssuers, startNamedIssuers } from '../support/named-issuers.ts';
import { installPacked, type PackedPackage } from '../support/packed-package.ts';
import { type CodeBlock, pages, readCodeBlocks, referencePage } from '../support/pages.ts';
import { needs } from '../support/programs.ts';

/** Commands that do not run here, and why. Every other line of a console block runs unchanged. */
const elsewhere: readonly (readonly [command: RegExp, reason: string])[] = [
  [/^npm (?:ci|cit|run)\b/, 'for a clone: .ci/run runs it'],
  [/^npx vitest run test\//, 'for a clone: .ci/run runs it'],
  [/^npx vitest run$|^node --test$|npx jest$/, 'examples/test/testing.test.ts runs it, in the folder of its files'],
  [/^docker |docker compose/, 'needs a container engine: npm run package runs the steps of the image'],
  [/^kubectl /, 'needs a cluster: test/deploy/kubernetes.test.ts reads the manifests'],
  [/^bun |bun run|^deno |deno serve/, 'another runtime: npm run runtimes runs the adapters there'],
  [/wrangler|localhost:8787/, 'downloads a runtime: npm run runtimes runs the file of the page on workerd'],
  [/portcullis watch /, 'ends only with its service: test/cli/watch.test.ts'],
  [/\$SSF_TOKEN/, 'the transmitter of a provider: test/core/revocation/signals has one'],
  [/portcullis revoke |\/revocations /, 'needs a store of cutoffs: test/cli/revoke.test.ts'],
  [/rediss:\/\/:password@/, 'Redis of a reader: test/core/revocation/redis-store.test.ts'],
];

/** State that a reader of a page has before its first command. */
interface Given {
  readonly before?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  /** Section that begins in another empty folder. */
  readonly fresh?: string;
}
const given: Readonly<Record<string, Given>> = {
  'docs/explain.md': { env: { IDP_DOMAIN: 'idp.example', IDP_AUDIENCE: 'https://api.example/' } },
  'docs/operations.md': {
    before: ['npx portcullis serve'],
    env: { IDP_DOMAIN: 'idp.example', IDP_AUDIENCE: 'https://api.example/' },
    files: {
      'rules.yaml': 'issuers: { a: { issuer: https://idp.example/, audience: a } }\nrules: [{ id: a, path: / }]\n',
    },
  },
  'docs/gate/proxies.md': { files: { 'your.cfg': 'frontend api\n  bind :443\n' } },
  'docs/testing.md': { fresh: 'Local provider' },
};

const audiences = { 'id.example.com': 'https://api.example.com/', 'idp.example': 'https://api.example/' };
const hosts = [...Object.keys(audiences), 'id.example', 'partners.example', 'tenant.eu.auth0.com'];
/** Packages that a console block may install: all of them have a locked version in this repository. */
const installable = new Set(
  ['package.json', 'examples/package.json', 'tools/bench/package.json'].flatMap((file) => {
    const { dependencies, devDependencies, peerDependencies } = JSON.parse(readFileSync(file, 'utf8'));
    return Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies, portcullis: '' });
  }),
);
/** The tsconfig.json that the pages link to. */
const typescript = readCodeBlocks('docs/getting-started.md').find(({ language }) => language === 'json')?.text ?? '';

/** True if Node runs TypeScript without a flag: from 22.18 on. */
const canRunTypes = Boolean(Reflect.get(process.features, 'typescript'));
const blocks = pages.filter((page) => page !== referencePage).flatMap(readCodeBlocks);
const linesOf = ({ text }: CodeBlock): readonly string[] =>
  text
    .replaceAll('\\\n', '')
    .trim()
    .split('\n')
    .map((line) => line.replace(/^\$ /, ''));
const isConsole = ({ language }: CodeBlock): boolean => language === 'console';
const reasonOf = (line: string) => elsewhere.find(([command]) => command.test(line))?.[1];

const startsServer = (line: string): boolean => /(?:^|\s)node (?:server|start|unprotected)[-\w]*\.[jt]s$/.test(line);

/** Name of the file that a block is, from its mark or from the sentence above it. */
function fileOf(block: CodeBlock): string | undefined {
  if (block.file !== undefined) return basename(block.file);
  if (!/^(?:json|[jt]s)$/.test(block.language)) return undefined;
  const above = readFileSync(block.page, 'utf8')
    .split('\n')
    .slice(0, block.line - 1)
    .join('\n');
  const [, named] = /`([\w.]+\.(?:json|[jt]s))`[^`\n]*\n+(?:<!--.*-->\n+)?$/.exec(`${above}\n`) ?? [];
  if (named !== undefined) return named;
  if (block.language !== 'json') return undefined;
  if (block.text.startsWith('[')) return 'cases.json';
  return /"issuers": [\s\S]*"rules": /.test(block.text) ? 'rules.json' : undefined;
}

it('each command that does not run here is on a page', () => {
  const lines = blocks.filter(isConsole).flatMap(linesOf);
  for (const [command] of elsewhere)
    expect(
      lines.some((line) => command.test(line)),
      String(command),
    ).toBe(true);
});

it.each(
  pages.filter((page) => /mcp|recipes|frameworks\/(?:express|fastify|fetch|hono|nest|next|node)\.md$/.test(page)),
)('%s: each package that its files import → installed by a command of the page', (page) => {
  const all = readCodeBlocks(page);
  const commands = all.filter(isConsole).flatMap(linesOf).join('\n');
  for (const { file, text } of all)
    for (const [, name = ''] of file === undefined ? [] : text.matchAll(/from '((?:@[\w-]+\/)?[a-z][\w-]*)[/']/g))
      expect(commands, file).toContain(name);
});

it('each schema that a block names → a file of the package', async () => {
  const { folder } = await installPacked('schemas');
  const named = blocks.flatMap(({ text }) => text.match(/(?<="\$schema": ")\.\/[^"]+/g) ?? []);
  expect(named.length).toBeGreaterThan(0);
  for (const path of named) expect(existsSync(join(folder, '..', path)), path).toBe(true);
});

describe('each console block of a page, in an empty folder, in order', needs('curl', 'openssl'), () => {
  const running = new Map<string, ChildProcess>();
  let issuers: NamedIssuers;
  let ca: string;
  const upstream = createServer((request, response) => void request.resume().on('end', () => response.end('{}')));
  beforeAll(async () => {
    issuers = await startNamedIssuers(hosts, 'https://api.example.com/');
    const { folder, write } = await installPacked('authority');
    await write('ca.pem', issuers.ca);
    ca = join(folder, 'ca.pem');
  }, 60_000);
  afterEach(async () => {
    for (const kind of running.keys()) await stop(kind);
    await closeUpstream();
  });
  afterAll(() => issuers?.close());

  async function closeUpstream(): Promise<void> {
    if (!upstream.listening) return;
    const closed = once(upstream.close(), 'close');
    upstream.closeAllConnections();
    await closed;
  }

  async function stop(kind: string): Promise<void> {
    const child = running.get(kind);
    running.delete(kind);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    process.kill(-Number(child.pid));
    await closed;
  }

  /** Compiles, as the pages say for a Node that runs no TypeScript. */
  async function compile(cwd: string): Promise<void> {
    await writeFile(join(cwd, 'tsconfig.json'), typescript);
    const child = spawn(process.execPath, [resolve('node_modules/typescript/bin/tsc')], { cwd, stdio: 'ignore' });
    await once(child, 'close');
  }

  /** Programs of the reader that the folder has: npx runs what is installed here. */
  async function writePrograms({ folder }: PackedPackage): Promise<string> {
    const bin = join(folder, 'bin');
    const main = join(folder, '../node_modules/portcullis/dist/cli/main.js');
    const node = `exec "${process.execPath}"`;
    const programs = {
      portcullis: `${node} "${main}" "$@"`,
      tsc: `${node} "${resolve('node_modules/typescript/bin/tsc')}" "$@"`,
      npx: 'exec "$@"',
      node: `${node} "$@"`,
      pbpaste: 'echo "$TOKEN"',
    };
    await mkdir(bin);
    for (const [name, text] of Object.entries(programs)) {
      await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`);
      await chmod(join(bin, name), 0o755);
    }
    return bin;
  }

  const withCommands = [...new Set(blocks.filter(isConsole).map(({ page }) => page))];
  it.each(withCommands)(
    '%s',
    async (page) => {
      const packed = await installPacked('console');
      const bin = await writePrograms(packed);
      const ports = new Map<string, number>();
      for (const port of ['3000', '4000', '8000', '9443', '9464']) ports.set(port, await findFreePort());
      const cache = join(packed.folder, 'cache');
      const local = (text: string): string =>
        text
          .replace(/\b(?:3000|4000|8000|9443|9464)\b/g, (port) => String(ports.get(port)))
          .replaceAll('~/.cache', cache)
          .replace(/\/(?:run|etc|var\/log)\/portcullis\//g, `${packed.folder}/host/`);
      let cwd = packed.folder;
      await mkdir(join(cwd, 'host'));
      await mkdir(join(cwd, 'rules'));
      await symlink(resolve('deploy'), join(cwd, 'deploy'));
      await symlink('../node_modules', join(cwd, 'node_modules'));
      const host = readFileSync(page, 'utf8').includes('id.example.com') ? 'id.example.com' : 'idp.example';
      const token = issuers.of(host).token({ aud: audiences[host], scope: 'read:messages read:orders', sub: 'alice' });
      const env: Readonly<Record<string, string>> = {
        PATH: [bin, process.env['PATH']].join(delimiter),
        XDG_CACHE_HOME: cache,
        TOKEN: token,
        HTTPS_PROXY: issuers.proxy,
        NO_PROXY: 'localhost,127.0.0.1',
        NODE_EXTRA_CA_CERTS: ca,
        ...given[page]?.env,
      };
      const isOpen = (port: number) =>
        new Promise<boolean>((settle) => {
          const socket = connect(port, '127.0.0.1', () => settle(true)).on('error', () => settle(false));
          socket.on('connect', () => socket.destroy());
        });
      const openPorts = async () => {
        const open: number[] = [];
        for (const port of ports.values()) if (await isOpen(port)) open.push(port);
        return open;
      };
      /** Runs a line until it ends or serves. Returns what it printed. */
      const run = async (typed: string): Promise<string> => {
        const line = canRunTypes ? typed : typed.replace(/(\snode [\w-]+)\.ts$|^(node [\w-]+)\.ts$/, '$1$2.js');
        const [program = ''] = /[\w-]+\.js$/.exec(line) ?? [];
        if (line !== typed && !existsSync(join(cwd, program))) await compile(cwd);
        const [, command = ''] = /(?:npx )?portcullis (dev|gate|serve)\b/.exec(line) ?? [];
        const isNode = startsServer(line);
        const kind = command === '' ? 'node' : 'portcullis';
        if (command !== '' || isNode) await stop(kind);
        const flags = command === 'dev' && !line.includes('--idp-port') ? ' --idp-port 9443' : '';
        const server = kind === 'node' ? { PORT: local('3000') } : { PORT: local('8000'), ADMIN_PORT: local('9464') };
        const own = command !== '' || isNode ? server : {};
        const before = await openPorts();
        // Its own group, because the shell waits for the program.
        const child = spawn('/bin/sh', ['-c', local(line.replace('portcullis dev', `portcullis dev${flags}`))], {
          cwd,
          env: { ...env, ...own },
          detached: true,
        });
        let text = '';
        let output = '';
        child.stdout.on('data', (part: Buffer) => (output += part));
        for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (text += part));
        if (command === '' && !isNode) {
          const [status] = await once(child, 'close');
          const allowed = line.includes('explain') ? [0, 1] : [0];
          expect(allowed, `${line}\n${text}`).toContain(status);
          return output;
        }
        running.set(kind, child);
        for (;;) {
          if (child.exitCode !== null || child.signalCode !== null) {
            expect([line, child.exitCode, text]).toEqual([line, 0, text]);
            return output;
          }
          const isReady =
            command === 'dev' ? text.includes('Stop with') : (await openPorts()).some((port) => !before.includes(port));
          if (isReady) return text;
          await new Promise((wait) => setTimeout(wait, 50));
        }
      };
      const all = readCodeBlocks(page);
      const write = async (name: string, text: string) => {
        await writeFile(join(cwd, name), local(text));
        if (name === 'rules.json') await cp(join(cwd, name), join(cwd, 'rules/rules.json'));
      };
      // Some pages show a file below its first use.
      for (const { file = '', text } of all) if (file !== '') await write(basename(file), text);
      for (const name of ['rules.json', 'cases.json']) {
        const found = all.find((block) => fileOf(block) === name);
        if (found !== undefined) await write(name, found.text);
      }
      for (const [name, text] of Object.entries(given[page]?.files ?? {})) await write(name, text);
      for (const line of given[page]?.before ?? []) await run(line);
      let printed = '';
      for (const block of all) {
        if (block.section === given[page]?.fresh && cwd === packed.folder) {
          cwd = join(cwd, 'fresh');
          await mkdir(cwd);
        }
        const name = fileOf(block);
        if (name !== undefined) await write(name, block.text);
        if (!isConsole(block)) continue;
        for (const line of linesOf(block)) {
          if (reasonOf(line) !== undefined) continue;
          const [, packages] = /^npm install (?:--save-dev )?(.*)$/.exec(line) ?? [];
          if (packages !== undefined) {
            for (const each of packages.split(' ')) expect(installable, line).toContain(each);
            continue;
          }
          if (line === 'npx tsc' && !existsSync(join(cwd, 'tsconfig.json'))) await write('tsconfig.json', typescript);
          if (startsServer(line)) await closeUpstream();
          if (/--upstream http:\/\/127\.0\.0\.1:3000/.test(line) && !running.has('node') && !upstream.listening)
            await once(upstream.listen(ports.get('3000'), '127.0.0.1'), 'listening');
          const output = await run(line);
          printed += output.endsWith('\n') ? output : `${output}\n`;
          const [, folder] = /^mkdir .* && cd (\S+)$/.exec(line) ?? [];
          if (folder !== undefined) cwd = join(cwd, folder);
        }
      }
      const plain = (text: string): string =>
        local(text)
          .replace(/ --idp [^ )]+/g, '')
          .replace(/\d+/g, '0');
      for (const { text } of page === 'README.md' ? all.filter(({ language }) => language === 'text') : [])
        for (const line of text.split('\n').filter((each) => !/this is Node|\?key=/.test(each)))
          expect(plain(printed)).toContain(plain(line));
      const guide = readFileSync(page, 'utf8');
      for (const [, result = ''] of guide.matchAll(/^It prints `([^`]+)`/gm)) expect(printed).toContain(result);
      if (page !== 'docs/getting-started.md') return;
      const shown = all.filter(({ language }) => language === 'text');
      expect(shown).toHaveLength(2);
      for (const { text } of shown) expect(printed).toContain(text.trim());
    },
    480_000,
  );
});
