import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { findFreePort } from '../../tools/shared/network.js';
import { installPacked } from '../support/packed-package.ts';
import { readCodeBlocks } from '../support/pages.ts';
import { needs } from '../support/programs.ts';

const run = promisify(execFile);
const running: ChildProcess[] = [];
afterAll(async () => {
  for (const child of running) {
    if (child.exitCode !== null) continue;
    child.kill();
    await once(child, 'exit');
  }
});

it('every block of the page, in its order, in an empty folder → the output that the page shows', {
  ...needs('curl'),
  timeout: 120_000,
}, async () => {
  const packed = await installPacked('getting-started');
  const [idp, port] = [await findFreePort(), await findFreePort()];
  const cache = join(packed.folder, 'cache');
  const local = (text: string): string =>
    text
      .replaceAll('9443', String(idp))
      .replaceAll('3000', String(port))
      .replaceAll('~/.cache', cache)
      .replaceAll('--only-provider', `--only-provider --idp-port ${idp}`)
      .replaceAll('portcullis token', `portcullis token --idp https://localhost:${idp}/`);
  // What npm would link.
  const bin = join(packed.folder, 'bin');
  const main = join(packed.folder, '../node_modules/portcullis/dist/cli/main.js');
  mkdirSync(bin);
  writeFileSync(
    join(bin, 'npx'),
    `#!/bin/sh\n[ "$1" = portcullis ] && shift && exec "${process.execPath}" "${main}" "$@"\n`,
    { mode: 0o755 },
  );
  const PATH = `${bin}:${process.env['PATH']}`;
  const options = { cwd: packed.folder, env: { PATH, XDG_CACHE_HOME: cache } };
  const start = async (line: string, isReady: (text: string) => Promise<boolean>): Promise<void> => {
    const child = spawn('/bin/sh', ['-c', `exec ${line.replace(/^(\S+=\S+) /, 'env $1 ')}`], options);
    running.push(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (text += part));
    while (!(await isReady(text))) {
      if (child.exitCode !== null) throw new Error(`${line}: ${text}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const isUp = () =>
    fetch(`http://localhost:${port}/`).then(
      ({ ok }) => ok,
      () => false,
    );
  const ready: Readonly<Record<string, (text: string) => Promise<boolean>>> = {
    'npx portcullis dev': async (text) => text.includes('Stop with'),
    NODE_EXTRA_CA_CERTS: isUp,
  };
  let printed = '';
  const shown: string[] = [];
  for (const { language, text } of readCodeBlocks('docs/getting-started.md')) {
    if (language === 'js') await packed.write('server.js', local(text));
    if (language === 'text') shown.push(text);
    if (language !== 'console') continue;
    for (const line of text.trim().split('\n')) {
      // The folder and its packages are there: npm needs a network.
      if (/^(?:mkdir|npm) /.test(line)) continue;
      const [, isReady] = Object.entries(ready).find(([words]) => line.startsWith(words)) ?? [];
      if (isReady !== undefined) await start(local(line), isReady);
      else {
        // The exit status of explain is 1 for a refused request.
        const { stdout } = await run('/bin/sh', ['-c', `${local(line)}; true`], options);
        printed += stdout.endsWith('\n') ? stdout : `${stdout}\n`;
      }
    }
  }
  expect(shown).toHaveLength(2);
  for (const each of shown) expect(printed).toContain(each.trim());
});
