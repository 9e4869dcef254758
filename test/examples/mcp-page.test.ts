import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { installPacked, type PackedPackage } from '../support/packed-package.ts';
import { readCodeBlocks } from '../support/pages.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const blocks = readCodeBlocks('docs/mcp.md');
const running: ChildProcess[] = [];
let packed: PackedPackage;
let folder: string;
let environment: Record<string, string>;

/** Starts a program in the folder, and waits for an output or a condition. */
async function start(words: readonly string[], ready: (text: string) => Promise<boolean>): Promise<string> {
  const child = spawn(process.execPath, [...words], { cwd: folder, env: environment });
  running.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
  }
  for (let attempt = 0; attempt < 600; attempt++) {
    if (await ready(text)) return text;
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${words.join(' ')} is not ready: ${text}`);
}

/** The console block with these words, as a user would type it. */
function commandWith(words: string): string {
  const found = blocks.find(({ language, text }) => language === 'console' && text.includes(words));
  if (found === undefined) throw new TypeError(`no command with ${words}`);
  return found.text.trim();
}

describe('docs/mcp.md, in an empty folder', () => {
  const ports = { idp: 0, server: 0 };
  beforeAll(async () => {
    packed = await installPacked('mcp');
    folder = packed.folder;
    Object.assign(ports, { idp: await findFreePort(), server: await findFreePort() });
    for (const { file, text } of blocks) {
      if (file !== undefined) await packed.write(file.replace('examples/mcp/', ''), text);
    }
    environment = {
      PATH: process.env['PATH'] ?? '',
      XDG_CACHE_HOME: join(folder, 'cache'),
      ISSUER: `https://localhost:${ports.idp}/`,
      RESOURCE: `http://localhost:${ports.server}/mcp`,
    };
  }, 60_000);
  afterAll(async () => {
    for (const child of running) {
      if (child.exitCode !== null) continue;
      child.kill();
      await once(child, 'exit');
    }
  });

  it('installs each package that the files import', () => {
    const line = commandWith('npm install portcullis');
    const imported = blocks
      .filter(({ file }) => file !== undefined)
      .flatMap(({ text }) => [...text.matchAll(/from '((?:@[\w-]+\/)?[\w-]+)/g)].map(([, name = '']) => name));
    expect(imported).toContain('@modelcontextprotocol/client');
    for (const name of imported) expect(line).toContain(name);
  });

  it('its files compile, and its commands run: the client calls the tool', async () => {
    expect(await packed.compile()).toEqual([]);
    const flags = commandWith('portcullis dev')
      .replace('npx portcullis ', '')
      .replace('--idp-port 4000', `--idp-port ${ports.idp}`)
      .replace('localhost:3000', `localhost:${ports.server}`)
      .split(' ');
    const told = await start([join(folder, '../node_modules/portcullis/dist/cli/main.js'), ...flags], async (text) =>
      text.includes('Stop with'),
    );
    const [, certificate = ''] = /certificate +(\S+)/.exec(told) ?? [];
    const [, secret = ''] = /client secret +(\S+)/.exec(told) ?? [];
    expect(await readFile(certificate, 'utf8')).toContain('BEGIN CERTIFICATE');
    Object.assign(environment, { NODE_EXTRA_CA_CERTS: certificate, CLIENT_SECRET_FILE: secret });
    expect(commandWith('node start.ts')).toMatch(/^NODE_EXTRA_CA_CERTS=\S+ ISSUER=\S+ node start.ts$/);
    await start(['.built/start.js'], async () =>
      fetch(String(environment['RESOURCE'])).then(
        () => true,
        () => false,
      ),
    );
    expect(commandWith('node client.ts')).toMatch(/^NODE_EXTRA_CA_CERTS=\S+ CLIENT_SECRET_FILE=\S+ node client.ts$/);
    const { stdout } = await run(process.execPath, ['.built/client.js'], { cwd: folder, env: environment });
    const page = await readFile(join(root, 'docs/mcp.md'), 'utf8');
    expect(page).toContain(`It prints \`${stdout.trim()}\`.`);
  }, 120_000);
});
