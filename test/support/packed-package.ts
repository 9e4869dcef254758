import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { inject } from 'vitest';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

declare module 'vitest' {
  export interface ProvidedContext {
    /** A folder of this run, outside the repository. */
    packedFolder: string;
    /** Folders with packages, in addition to `node_modules`, and before it. */
    moduleFolders?: readonly string[];
  }
}

/** An empty folder outside this repository, with the package installed from its tarball. */
export type PackedPackage = Awaited<ReturnType<typeof openFolder>>;

/**
 * Installs the built package like a user, once for all tests of a run, and creates an empty folder. All other packages
 * come from this repository, because `npm install` needs a network.
 */
export async function installPacked(name: string): Promise<PackedPackage> {
  const shared = inject('packedFolder');
  await installOnce(shared);
  return openFolder(await mkdtemp(join(shared, `${name}-`)));
}

/**
 * Creates a folder outside this repository with the package, its dependencies and the types of Node, without optional
 * packages. The caller removes it.
 */
export async function installBare(): Promise<PackedPackage> {
  const shared = inject('packedFolder');
  await installOnce(shared);
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-bare-'));
  const modules = join(folder, 'node_modules');
  // A copy, because a link would resolve packages from its target.
  await cp(join(shared, 'node_modules/portcullis'), join(modules, 'portcullis'), { recursive: true });
  const text = await readFile(join(root, 'package.json'), 'utf8');
  const { dependencies } = JSON.parse(text) as { readonly dependencies: object }; // ours
  for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(root, 'node_modules', name), join(modules, name));
  }
  return openFolder(folder);
}

/** Creates a folder next to the installed package, with its own `package.json`. */
export async function openFolder(folder: string) {
  /** Writes a file, and the folders above it. */
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(folder, dirname(path)), { recursive: true });
    await writeFile(join(folder, path), text);
  };
  await write('package.json', JSON.stringify({ type: 'module', private: true }));
  return {
    folder,
    write,
    /**
     * Compiles the modules strictly, and lists the errors. JavaScript modules are in `.built`. `declarations`: also
     * checks declarations of packages, unless a project sets `skipLibCheck`. Default: skipped.
     */
    async compile(declarations: 'checked' | 'skipped' = 'skipped'): Promise<readonly string[]> {
      const compilerOptions = {
        ...{ target: 'es2023', module: 'nodenext', lib: ['es2023'], types: ['node'], strict: true },
        skipLibCheck: declarations === 'skipped',
        ...{ noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, allowJs: true, checkJs: false },
        ...{ experimentalDecorators: true, emitDecoratorMetadata: true, rewriteRelativeImportExtensions: true },
        ...{ rootDir: '.', outDir: '.built' },
      };
      const project = { compilerOptions, include: ['.'], exclude: ['.built'] };
      await write('tsconfig.json', JSON.stringify(project));
      const compiler = join(root, 'node_modules/typescript/bin/tsc');
      return await run(process.execPath, [compiler, '-p', folder]).then(
        () => [],
        ({ stdout }: { readonly stdout: string }) => stdout.split('\n').filter((line) => line !== ''),
      );
    },
  };
}

export async function installOnce(shared: string): Promise<void> {
  const modules = join(shared, 'node_modules');
  await doOnce(modules, async () => {
    await unpack(await pack(shared), join(modules, 'portcullis'));
    for (const folder of [...(inject('moduleFolders') ?? []), 'node_modules']) {
      for (const name of await listPackages(join(root, folder))) {
        const link = join(modules, name);
        await mkdir(dirname(link), { recursive: true });
        if (!existsSync(link)) await symlink(join(root, folder, name), link);
      }
    }
    return '';
  });
}

/** Names of the packages that npm installed into a folder, without those that only one of them uses. */
async function listPackages(folder: string): Promise<readonly string[]> {
  const { packages } = JSON.parse(await readFile(join(folder, '.package-lock.json'), 'utf8')) as { packages: object }; // npm's
  return Object.keys(packages).flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1] ?? []);
}

/**
 * Fills a folder once in a run, and gives the text that came of it: the first test that comes does the work, the others
 * wait for it.
 */
export async function doOnce(folder: string, work: () => Promise<string>): Promise<string> {
  const done = `${folder}.done`;
  const isFirst = await mkdir(folder).then(
    () => true,
    () => false,
  );
  if (isFirst) {
    await writeFile(`${done}.part`, await work());
    await rename(`${done}.part`, done); // whole, or not there
  }
  for (let attempt = 0; attempt < 1200; attempt++) {
    if (existsSync(done)) return await readFile(done, 'utf8');
    await sleep(50);
  }
  throw new Error(`${folder} was not ready in time`);
}

async function pack(folder: string): Promise<Buffer> {
  const words = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const { stdout } = await run('npm', words, { cwd: root });
  const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }]; // as npm writes it
  return gunzipSync(await readFile(join(folder, filename)));
}

const block = 512;

/** Writes the files of a tar archive (POSIX ustar), without the folder that all of them lie in. */
async function unpack(archive: Buffer, folder: string): Promise<void> {
  const text = (from: number, to: number): string => archive.toString('utf8', from, to).split('\0', 1)[0] ?? '';
  for (let at = 0; archive[at] !== 0; ) {
    const name = [text(at + 345, at + 500), text(at, at + 100)].filter((part) => part !== '').join('/');
    const size = Number.parseInt(text(at + 124, at + 136), 8);
    const path = join(folder, name.replace(/^package\//, ''));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, archive.subarray(at + block, at + block + size));
    at += block + Math.ceil(size / block) * block;
  }
}
