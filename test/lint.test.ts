import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { useFolder } from './support/folder.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const folder = useFolder();

/** Every form in which a member is read, written, declared or imported; one on each line. */
const forms = [
  "import { _connectionListener } from 'node:http';",
  "import { _connectionListener as listener } from 'node:http';",
  'socket._handle.fd;',
  'socket?._handle;',
  'socket._paused = true;',
  "socket['_paused'] = true;",
  'socket["_paused"];',
  'socket[`_paused`];',
  "Reflect.get(socket, '_handle');",
  'const { _handle } = socket;',
  'const { _handle: handle } = socket;',
  '({ _handle: handle } = socket);',
  'Object.assign(socket, { _handle: null });',
  'interface WithHandle { readonly _handle: object }',
  'interface WithRead { _read(): void }',
  'type WithHead = { _header: string };',
];
const allowed =
  "series['_sum'] = name + '_FILE' + '_'; call((_event) => {}); const [, _rest] = list; type Of<_T> = string;";

const files = {
  'src/any.ts': forms.join('\n'),
  'src/server/listener/http-server.ts': 'socket._handle;',
  'src/allowed.ts': allowed,
};

/** Where the linter of this repository finds a member that is not public: a file and a line each. */
function findPrivate(): readonly string[] {
  const config = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8').replaceAll('"./', `"${root}`));
  writeFileSync(join(folder, 'biome.json'), JSON.stringify({ ...config, vcs: { enabled: false } }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const words = ['lint', '--reporter=github', '--max-diagnostics=none'];
  const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
  const { stdout } = spawnSync(process.execPath, [biome, ...words], { cwd: folder, encoding: 'utf8' });
  return Array.from(
    stdout.matchAll(/^::error title=plugin,file=([^,]+),line=(\d+),.*A member that begins with _ is not public/gm),
    ([, file, line]) => `${file?.slice(file.indexOf('src/'))}:${line}`,
  );
}

it('lint: a member that begins with _: any form, in any file → an error on its line', () => {
  expect(findPrivate().toSorted()).toEqual(
    [...forms.map((_form, index) => `src/any.ts:${index + 1}`), 'src/server/listener/http-server.ts:1'].toSorted(),
  );
});
