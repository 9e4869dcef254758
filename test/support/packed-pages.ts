import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { inject } from 'vitest';
import { doOnce, installOnce, openFolder } from './packed-package.ts';
import { type CodeBlock, pages, readCodeBlocks, referencePage } from './pages.ts';

/** The blocks of code that are a whole module. The reference has declarations that the compiler wrote. */
export const scripts: readonly CodeBlock[] = pages
  .filter((page) => page !== referencePage)
  .flatMap(readCodeBlocks)
  .filter(({ language, fragment }) => /^(?:ts|js)$/.test(language) && fragment === undefined);

/** Returns the path of a block: files of `examples` by their names, other blocks by page and line. */
export function placeOf({ page, line, language, file }: CodeBlock): string {
  return file ?? posix.join('pages', page.replace(/\.md$/, ''), `line-${line}.${language}`);
}

/**
 * Compiles the code of all pages with the packed package, once for all tests of a run, in a folder outside this repository. `folder`
 * has the JavaScript: files of `examples` by their path, other blocks at `placeOf`. `load` loads a module there, or a package as a
 * module there would: by Node itself, and not by the runner of the tests.
 */
export async function buildPages() {
  const shared = inject('packedFolder');
  await installOnce(shared);
  const folder = join(shared, 'pages');
  const errors = await doOnce(folder, async () => {
    const packed = await openFolder(folder);
    for (const script of scripts) await packed.write(placeOf(script), completeBlock(script));
    return JSON.stringify(await packed.compile());
  });
  const built = join(folder, '.built');
  const load: (name: string) => unknown = createRequire(join(built, 'load.js'));
  return { folder: built, errors: JSON.parse(errors) as readonly string[], load }; // as written above
}

/** The names that a block declares at its top. */
export function namesOf({ text }: CodeBlock): readonly string[] {
  return [...text.matchAll(/^(?:export )?(?:async )?(?:const|function) (\w+)/gm)].map(([, name = '']) => name);
}

/** Formats a block as a module, with its hidden code in one line and its names as exports. */
function completeBlock(block: CodeBlock): string {
  const { file, given, text } = block;
  if (file !== undefined) return text;
  const names = namesOf(block).filter((name) => !new RegExp(`^export .*\\b${name}\\b`, 'm').test(text));
  return `${given.replaceAll('\n', ' ')} ${text}\nexport { ${names.join(', ')} };\n`;
}
