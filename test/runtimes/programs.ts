import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type InlineConfig, type Plugin } from 'vite';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The programs that a runtime is given. */
export interface Programs {
  /** For Node, Bun and Deno; packages are loaded from where they are installed. */
  readonly server: string;
  /** For workerd: one module with all packages. */
  readonly worker: string;
  /** Removes what was written. */
  remove(): Promise<void>;
}

/** Entry points that the examples import. */
const entryPoints: ReadonlyMap<string, string> = new Map([
  ['portcullis', 'index'],
  ['portcullis/fetch', 'adapters/fetch'],
]);

/** Built modules replace their sources: the suite needs modules that are not shipped separately. */
const takeBuilt: Plugin = {
  name: 'take-built',
  enforce: 'pre',
  resolveId(source) {
    const path = /^(?:\.\.\/)+src\/(.+)\.ts$/.exec(source)?.[1] ?? entryPoints.get(source);
    return path === undefined ? null : join(root, 'build', `${path}.js`);
  },
};

const entry = (name: string): string => fileURLToPath(new URL(`${name}.ts`, import.meta.url));

/** Bundles the programs for one run, within the package, so that its dependencies are found. */
export async function buildPrograms(): Promise<Programs> {
  const folder = await mkdtemp(join(root, '.runtimes-'));
  const shared: InlineConfig = { configFile: false, root, logLevel: 'error', plugins: [takeBuilt] };
  const output = { codeSplitting: false, entryFileNames: '[name].js' } as const;
  const usual = { outDir: folder, emptyOutDir: false, minify: false, target: 'es2023' } as const;
  await build({ ...shared, build: { ...usual, ssr: entry('server'), rolldownOptions: { output } } });
  await build({
    ...shared,
    ssr: { target: 'webworker', noExternal: true },
    resolve: { conditions: ['workerd', 'worker'] },
    build: { ...usual, ssr: entry('worker'), rolldownOptions: { output, external: [/^node:/, /^cloudflare:/] } },
  });
  return {
    server: join(folder, 'server.js'),
    worker: join(folder, 'worker.js'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
