import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { installPacked, type PackedPackage } from '../support/packed-package.ts';
import { readCodeBlocks } from '../support/pages.ts';

const run = promisify(execFile);
const [path, start] = ['docs/testing.md', 'docs/getting-started.md'];
const blocks = readCodeBlocks(start);
const commands = blocks.filter(({ language }) => language === 'console').flatMap(({ text }) => text.trim().split('\n'));
const running: ChildProcess[] = [];

describe('local provider of the pages, in an empty folder', () => {
  let packed: PackedPackage;
  let main: string;
  let environment: Record<string, string>;
  const ports = { idp: 0, server: 0 };

  /** The words behind `portcullis` in the command of the page that has this text. */
  const wordsOf = (text: string): readonly string[] => {
    const line = commands.find((command) => command.includes(text)) ?? '';
    const [, words = ''] = /npx portcullis ([^)]*)/.exec(line) ?? [];
    return words.trim().split(' ');
  };
  const launch = async (words: readonly string[], ready: (text: string) => Promise<boolean>): Promise<string> => {
    const child = spawn(process.execPath, [...words], { cwd: packed.folder, env: environment });
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
  };
  const order = async (...flags: readonly string[]): Promise<string> => {
    const { stdout } = await run(process.execPath, [main, ...flags], { env: environment });
    return stdout.trim();
  };

  beforeAll(async () => {
    packed = await installPacked('local-provider');
    main = join(packed.folder, '../node_modules/portcullis/dist/cli/main.js');
    Object.assign(ports, { idp: await findFreePort(), server: await findFreePort() });
    environment = {
      PATH: process.env['PATH'] ?? '',
      XDG_CACHE_HOME: join(packed.folder, 'cache'),
    };
    const server = blocks.find(({ language }) => language === 'js')?.text ?? '';
    const moved = server.replace('localhost:9443', `localhost:${ports.idp}`).replace('3000', String(ports.server));
    await packed.write('server.js', moved);
    const words = wordsOf('dev --only-provider');
    const told = await launch([main, ...words, '--idp-port', String(ports.idp)], async (text) =>
      text.includes('Stop with'),
    );
    const [, certificate = ''] = /certificate +(\S+)/.exec(told) ?? [];
    const [, secret = ''] = /client secret +(\S+)/.exec(told) ?? [];
    // The places that the page names, below the folder of the cache.
    expect([certificate, secret].map((path) => path.replace(environment['XDG_CACHE_HOME'] ?? '', '~/.cache'))).toEqual([
      '~/.cache/portcullis/identity/certificate.pem',
      '~/.cache/portcullis/identity/client-secret',
    ]);
    expect(await readFile(certificate, 'utf8')).toContain('BEGIN CERTIFICATE');
    Object.assign(environment, { NODE_EXTRA_CA_CERTS: certificate, CLIENT_SECRET_FILE: secret });
  });
  afterAll(async () => {
    for (const child of running) {
      if (child.exitCode !== null) continue;
      child.kill();
      await once(child, 'exit');
    }
  });

  it('the server takes the tokens of the command, and refuses the odd ones', async () => {
    const url = `http://localhost:${ports.server}/messages`;
    await launch(['server.js'], () =>
      fetch(url).then(
        () => true,
        () => false,
      ),
    );
    const call = async (token: string) => {
      for (;;) {
        const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
        const answer = [response.status, await response.text()] as const;
        // A busy host may not fetch the keys in time: then the response is 503, and the client repeats the request.
        if (response.status !== 503) return answer;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };
    const flags = wordsOf('$(npx portcullis token --scope');
    expect(flags).toContain('--sub');
    const [, answer] = await call(await order(...flags));
    expect(await readFile(start, 'utf8')).toContain(answer);
    expect((await call(await order(...flags, '--expired')))[0]).toBe(401);
    expect((await call(await order('token')))[0]).toBe(403);
  });

  it('the page has each flag of the command, and the command each flag of the page', async () => {
    const page = await readFile(path, 'utf8');
    const help = await order('token', '--help');
    const named = [...page.matchAll(/^\| `--.*$/gm)].flatMap(([line]) => line.match(/--[a-z-]+/g) ?? []);
    expect(named.length).toBeGreaterThan(10);
    for (const flag of named) expect(help).toContain(flag);
    for (const [, flag = ''] of help.matchAll(/^ {2}(--[a-z-]+)/gm)) {
      if (!['--idp', '--method', '--nonce', '--help'].includes(flag)) expect(named).toContain(flag);
    }
  });
});
