// Time of `import 'portcullis'` in its own process.
import { spawnSync } from 'node:child_process';
import { processors } from '../../shared/processes.js';

const times = 9;
const program = `const at = performance.now(); await import(process.argv[1]); console.log(performance.now() - at);`;

/** Milliseconds of one import of a package, which the folder resolves by its own name. */
export function timeImport({ name = 'portcullis', folder = '.', node = process.execPath } = {}) {
  const words = ['-c', processors.server, node, '--input-type=module', '--eval', program, name];
  const { stdout, stderr, status } = spawnSync('taskset', words, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`import ${name}: ${stderr}`);
  return Number(stdout);
}

/** Milliseconds of each import, except the first one, which reads the files from disk. */
export async function measureImport() {
  const milliseconds = Array.from({ length: times + 1 }, () => timeImport());
  return { milliseconds: milliseconds.slice(1) };
}
