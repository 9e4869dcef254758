import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { failures } from '../src/failures.ts';
import { ruleNames } from '../src/issuers/trusted-issuer.ts';
import { memberNames } from '../src/policy/checked-policy.ts';
import { dpopChecks, serverChecks } from '../src/resource-server-options.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../', import.meta.url));
const page = await readFile(join(root, 'docs/library.md'), 'utf8');

/** The first cells of the rows of a table, which follows a text. */
function namesBehind(text: string): readonly string[] {
  const [, table = ''] = page.slice(page.indexOf(text)).match(/\n\n\|.*\n\| ---.*\n((?:\|.*\n)+)/) ?? [];
  return [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name);
}

describe('docs/library.md', () => {
  it.each([
    ['## Options', Object.keys(serverChecks)],
    ['Members of `dpop`', Object.keys(dpopChecks)],
  ])('%s: every option stands in the table, and no other', (text, names) => {
    expect(namesBehind(text)).toEqual(names);
  });

  it('## Policies: every member stands in the table, and no other', () => {
    expect(namesBehind('## Policies').toSorted()).toEqual(memberNames.toSorted());
  });

  it('the rules of an issuer are named', () => {
    const [, text = ''] = /may have rules of its own: ([^.]*)\./s.exec(page) ?? [];
    expect([...text.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(ruleNames);
  });

  it('every reason that it names is one', () => {
    const named = [...page.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)].map(([, name = '']) => name);
    const others = ['auth_time', 'acr_values', 'max_age', 'insufficient_user_authentication'];
    expect(named.filter((name) => !others.includes(name) && !Object.hasOwn(failures, name))).toEqual([]);
  });

  it('every block of code compiles', async () => {
    const blocks = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);
    expect(blocks.length).toBeGreaterThan(8);
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-library-'));
    try {
      await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
      await writeFile(join(folder, 'package.json'), '{"type":"module"}');
      const files = blocks.map((_, index) => `block${index}.ts`);
      await Promise.all(blocks.map((code, index) => writeFile(join(folder, `block${index}.ts`), code)));
      const paths = {
        portcullis: [join(root, 'src/index.ts')],
        'portcullis/hono': [join(root, 'src/adapters/hono.ts')],
        'portcullis/testing': [join(root, 'src/testing/index.ts')],
      };
      const compilerOptions = { noUnusedLocals: false, paths };
      const settings = { extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files };
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(settings));
      const compiler = [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder];
      const outcome = await run(process.execPath, compiler).then(
        ({ stdout }) => ({ code: 0, stdout }),
        ({ code, stdout }) => ({ code, stdout }),
      );
      expect(outcome).toEqual({ code: 0, stdout: '' });
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 60_000);
});
