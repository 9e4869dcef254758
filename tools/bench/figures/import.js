// How long `import 'portcullis'` takes, in a process of its own.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { processors } from '../children.js';

const times = 9;
const library = new URL('../../../dist/index.js', import.meta.url).href;
const program = `const at = performance.now(); await import(${JSON.stringify(library)}); console.log(performance.now() - at);`;

/** Milliseconds of each import; the first one, which reads the files from the disk, is left out. */
export async function measureImport() {
  const milliseconds = Array.from({ length: times + 1 }, () =>
    Number(
      execFileSync('taskset', ['-c', processors.server, process.execPath, '--input-type=module', '--eval', program], {
        encoding: 'utf8',
        cwd: fileURLToPath(new URL('../../..', import.meta.url)),
      }),
    ),
  );
  return { milliseconds: milliseconds.slice(1) };
}
