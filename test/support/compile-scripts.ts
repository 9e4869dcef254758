import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = process.cwd();

/** Compiles modules with the compiler options of this repository. Returns the errors. */
export async function compileScripts(modules: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const folder = await mkdtemp(join(root, '.docs-'));
  try {
    for (const [name, text] of modules) await writeFile(join(folder, name), `${text}\nexport {};\n`);
    const compilerOptions = {
      allowJs: true,
      noUnusedLocals: false,
      noUnusedParameters: false,
      experimentalDecorators: true,
    };
    const project = { extends: '../tsconfig.json', compilerOptions, include: ['*'], exclude: [] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(project));
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    return await run(process.execPath, [compiler, '-p', folder]).then(
      () => [],
      ({ stdout }: { readonly stdout: string }) => stdout.split('\n').filter((line) => line !== ''),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}
