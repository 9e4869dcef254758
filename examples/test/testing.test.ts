import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { proofFlaws, tokenFlaws } from '../../src/testing/index.ts';
import { installPacked, type PackedPackage } from '../../test/support/packed-package.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'examples/testing/');
const page = readFileSync(new URL('../../docs/testing.md', import.meta.url), 'utf8');

/** A folder, what is typed in it, and what the runner says of two tests that pass. */
const examples = [
  { name: 'vitest', command: 'npx vitest run', passed: /Tests +2 passed \(2\)/ },
  { name: 'node-test', command: 'node --test', passed: /^\S pass 2\n\S fail 0$/m },
  { name: 'jest', command: 'NODE_OPTIONS=--experimental-vm-modules npx jest', passed: /Tests: +2 passed, 2 total/ },
  { name: 'jest-commonjs', command: 'npx jest', passed: /Tests: +2 passed, 2 total/ },
] as const;

/** Files that the page copies. */
const copies = [...page.matchAll(/<!-- file: (\S+) -->\n```\w+\n([\s\S]*?)```\n<!-- end -->/g)].map(
  ([, path = '', text = '']) => ({ path, text }),
);

/** Without what the runner of this test has put there for runners below it. */
const environment = Object.fromEntries(
  Object.entries({ ...process.env, NO_COLOR: '1' }).filter(
    ([name]) => !/^(?:VITEST|TEST$|NODE_ENV$|NODE_OPTIONS$)/.test(name),
  ),
);

describe('examples of the test kit, copied from the page, with the packed package', () => {
  let packed: PackedPackage;
  beforeAll(async () => {
    packed = await installPacked('testing');
    for (const { path, text } of copies) await packed.write(path.replace('examples/testing/', ''), text);
  });

  it('every folder is run', () =>
    expect(examples.map(({ name }) => name).toSorted()).toEqual(readdirSync(folder).toSorted()));

  it.each(examples)('$name: both tests pass', async ({ name, command, passed }) => {
    // What `npx` finds: a machine that has npm has it, and may not have the link of that name.
    const folders = ['examples/node_modules', 'node_modules'].map((modules) => join(root, modules, '.bin'));
    const PATH = [...folders, environment['PATH']].join(':');
    const options = { cwd: join(packed.folder, name), env: { ...environment, PATH }, timeout: 120_000 };
    const typed = command.replace('npx ', '');
    const { stdout, stderr } = await run('/bin/sh', ['-c', typed], options);
    expect(`${stdout}${stderr}`).toMatch(passed);
  });
});

describe('docs/testing.md', () => {
  it.each(examples)('says how $name is run', ({ command }) =>
    expect(page).toContain(`\`\`\`console\n${command}\n\`\`\``),
  );

  it.each([
    ['token', tokenFlaws],
    ['proof', proofFlaws],
  ])('lists the flaws of a %s', (name, flaws) => {
    const [, text = ''] = new RegExp(`<!-- flaws: ${name} -->\\n([\\s\\S]*?)<!-- end -->`).exec(page) ?? [];
    expect(text.match(/\w+/g)).toEqual(flaws);
  });
});
