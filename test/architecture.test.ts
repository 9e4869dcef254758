import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, dirname, join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, it } from 'vitest';
import { type Failure, failures } from '../src/core/failures.ts';
import { nameSettings } from '../src/server/settings/setting-names.ts';
import { settingTable } from '../src/server/settings/setting-table.ts';
import { environmentName } from '../src/server/settings/settings.ts';
import { variants } from '../src/server/variants/variants.ts';
import { coverageFloors } from './support/coverage-floors.ts';
import { words } from './support/words.ts';

/** One source file, and what its text says. */
interface Source {
  /** Path under src/, with slashes. */
  readonly path: string;
  /** Without the comments that have lines of their own. */
  readonly text: string;
  /** Paths under src/ of the files it imports. */
  readonly files: readonly string[];
  /** Packages and `node:` modules it imports, with the names that it takes from them. */
  readonly modules: readonly { readonly name: string; readonly names: readonly string[] }[];
  /** Of all these, what is loaded when the file runs: types alone are not. */
  readonly loads: readonly string[];
}

const root = fileURLToPath(new URL('../src/', import.meta.url));

const sources: readonly Source[] = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => readSource(path.split(sep).join('/')))
  .toSorted((a, b) => a.path.localeCompare(b.path));

function readSource(path: string): Source {
  const text = readFileSync(join(root, path), 'utf8')
    .replace(/^\s*\/\*.*?\*\//gms, '')
    .replace(/^\s*\/\/.*$/gm, '');
  const statements = [
    ...text.matchAll(/^(?:import|export)\s+(?:type\s+)?(?:([^'";]*?)\s+from\s+)?'([^']+)'/gm),
    ...text.matchAll(/(?<!\w)import\(()'([^']+)'\)/g),
  ].map(([statement, names = '', name = '']) => ({
    name,
    names: names.match(/(?!type\b|as\b)(?<!\w)[\w$*]+/g) ?? [],
    isType: /^(?:import|export)\s+type\b/.test(statement),
  }));
  const resolve = (name: string): string => (name.startsWith('.') ? posix.join(dirname(path), name) : name);
  return {
    path,
    text,
    files: statements.filter(({ name }) => name.startsWith('.')).map(({ name }) => resolve(name)),
    loads: statements.filter(({ isType }) => !isType).map(({ name }) => resolve(name)),
    modules: statements.filter(({ name }) => !name.startsWith('.')),
  };
}

/** The folder of a file, or the file itself if it lies at the top. */
function folderOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : path;
}

/** The ranked folder within `core/`, `server/` or `gate/` of a file that lies there: the innermost that has a rank. */
function innerFolderOf(path: string, among: readonly (readonly string[])[]): string {
  const named = path.split('/').slice(1);
  return named.findLast((name) => rankOf(name, among) >= 0) ?? posix.basename(dirname(path));
}

/** Each folder may import from those on the lines above it: not from its neighbours, and never from below. */
const ranks: readonly (readonly string[])[] = [
  ['core'],
  ['adapters', 'explain', 'providers'],
  ['testing'],
  ['server'],
  ['index.ts'],
  ['serve', 'gate'],
  ['console'],
  ['dev'],
  ['cli'],
];
/** The same within `core/`. */
const coreRanks: readonly (readonly string[])[] = [
  ['attempt.ts', 'failures.ts', 'likeliest-name.ts', 'package-folder.ts', 'platform.ts', 'shown-text.ts', 'version.ts'],
  ['option-members.ts', 'refused.ts'],
  ['checks.ts', 'shown-comparison.ts'],
  ['walk.ts'],
  ['jose', 'http'],
  ['outbound', 'dpop'],
  ['keys', 'revocation', 'introspection'],
  ['token'],
  ['policy'],
  ['refusal'],
  ['resource-server'],
  ['logout', 'mcp', 'signals', 'exchange'],
  ['assertion'],
];
/** The same within `server/`. */
const serverRanks: readonly (readonly string[])[] = [
  ['variants', 'audit'],
  ['settings'],
  ['http'],
  ['observation', 'admin'],
  ['lifecycle', 'console'],
  ['keys', 'listener', 'revocation'],
  ['process'],
];
/** The same within `gate/`: files that lie at its top and have no rank of their own are last. */
const gateRanks: readonly (readonly string[])[] = [
  ['schema'],
  ['match'],
  ['identity'],
  ['headers.ts'],
  ['conditions'],
  ['rules'],
  ['mcp-metadata.ts'],
  ['gate.ts'],
  ['beside', 'proxy', 'review'],
  ['gate'],
];
const rankOf = (folder: string, among = ranks): number => among.findIndex((folders) => folders.includes(folder));

type Edge = readonly [from: string, to: string];

/** The imports that leave a folder, as folders. */
function leaving(edges: readonly Edge[], folder: (path: string) => string): readonly Edge[] {
  return edges.map(([from, to]) => [folder(from), folder(to)] as const).filter(([from, to]) => from !== to);
}

/** Every way that leads back to where it began. */
function findCycles(edges: readonly Edge[]): readonly string[] {
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (name: string, way: readonly string[]): void => {
    if (way.includes(name)) cycles.push([...way.slice(way.indexOf(name)), name].join(' → '));
    if (way.includes(name) || done.has(name)) return;
    for (const [from, to] of edges) if (from === name) visit(to, [...way, name]);
    done.add(name);
  };
  for (const [name] of edges) visit(name, []);
  return cycles;
}

const imports: readonly Edge[] = sources.flatMap(({ path, files }) => files.map((file) => [path, file] as const));
/** The folders with ranks of their own: the imports within each, by their inner folders. */
const inner = [
  ['core', coreRanks],
  ['server', serverRanks],
  ['gate', gateRanks],
] as const;
const importsWithin = (name: string, among: readonly (readonly string[])[]): readonly Edge[] =>
  leaving(
    imports.filter((edge) => edge.every((path) => folderOf(path) === name)),
    (path) => innerFolderOf(path, among),
  );

describe('direction of imports', () => {
  it('the sources are read: files, and imports between them', () => {
    expect(sources.length).toBeGreaterThan(30);
    expect(imports).toContainEqual(['core/token/access-token.ts', 'core/refused.ts']);
    expect(imports).toContainEqual(['core/token/access-token.ts', 'core/keys/key-set.ts']); // a type-only one
    expect(imports).toContainEqual(['cli/commands/run.ts', 'cli/serve.ts']); // a dynamic one
    for (const { path, text, files, modules } of sources) {
      const written = text.match(/(?:\bfrom |^import |\bimport\()'/gm) ?? [];
      expect(files.length + modules.length, path).toBe(written.length);
    }
  });

  it('every file lies in a folder that has a rank', () => {
    expect(sources.map(({ path }) => path).filter((path) => rankOf(folderOf(path)) < 0)).toEqual([]);
    for (const [name, among] of inner) {
      const within = sources.filter(({ path }) => folderOf(path) === name);
      expect(within.length).toBeGreaterThan(30);
      expect(within.filter(({ path }) => rankOf(innerFolderOf(path, among), among) < 0)).toEqual([]);
    }
  });

  it('no folder has two ranks', () => {
    const folders = [ranks, coreRanks, serverRanks, gateRanks].flatMap((each, index) =>
      each.flat().map((name) => `${index} ${name}`),
    );
    expect(folders.filter((folder, index) => folders.indexOf(folder) !== index)).toEqual([]);
  });

  it('every import of a file leads to one that exists, by its .ts name', () => {
    const paths = new Set(sources.map(({ path }) => path));
    expect(imports.filter(([, file]) => !paths.has(file))).toEqual([]);
  });

  it('core → … → cli: each folder imports only from folders above it in the table', () => {
    const around = leaving(imports, folderOf);
    expect(around.length).toBeGreaterThan(50);
    expect(around.filter(([from, to]) => rankOf(to) >= rankOf(from))).toEqual([]);
  });

  it.each(inner)('the same within %s', (name, among) => {
    const around = importsWithin(name, among);
    expect(around.length).toBeGreaterThan(10);
    expect(around.filter(([from, to]) => rankOf(to, among) >= rankOf(from, among))).toEqual([]);
  });

  it('no folder leads back to itself, those of the core and the server included', () => {
    expect(findCycles(leaving(imports, folderOf))).toEqual([]);
    for (const [name, among] of inner) expect(findCycles(importsWithin(name, among))).toEqual([]);
    expect(findCycles([...leaving(imports, folderOf), ['core', 'cli']])).not.toEqual([]); // it would be found
  });

  it('a stranger reads the product from the entries of src: at most twelve', () =>
    expect(readdirSync(root).length).toBeLessThanOrEqual(12));

  it('the local provider is imported by dev and cli alone, and knows no server and no adapter', () => {
    const isProvider = (path: string): boolean => /^dev\/(?:provider|tokens)\//.test(path);
    const around = imports.filter(([from, to]) => isProvider(from) !== isProvider(to));
    expect(around.length).toBeGreaterThan(10);
    expect(around.filter(([from, to]) => isProvider(to) && !['dev', 'cli'].includes(folderOf(from)))).toEqual([]);
    const unknown = ['adapters', 'server', 'serve', 'gate', 'console', 'dev', 'cli'];
    expect(around.filter(([from, to]) => isProvider(from) && unknown.includes(folderOf(to)))).toEqual([]);
  });

  it('the page of the console loads only itself, and knows of the others the types of the wire and of a check', () => {
    const isPage = (path: string): boolean =>
      path.startsWith('console/page/') || /^dev\/(?:page\/|tries\/try-kinds)/.test(path);
    const page = sources.filter(({ path }) => isPage(path));
    const outside = page.flatMap(({ files }) => files).filter((path) => !isPage(path));
    expect([...new Set(outside)]).toEqual(['explain/explained-check.ts', 'server/console/wire.ts']);
    expect(page.flatMap(({ loads }) => loads).filter((path) => !isPage(path))).toEqual(['htm/preact/standalone']);
  });

  it('the test kit is imported by nothing, and loads only Node and, when asked, what makes certificates and explanations', () => {
    const ofOthers = imports.filter(([from, to]) => folderOf(to) === 'testing' && folderOf(from) !== 'testing');
    expect(ofOthers.filter(([, to]) => !to.startsWith('testing/certificate/'))).toEqual([]);
    const loaded = new Set<string>();
    const load = (path: string): void => {
      if (loaded.has(path)) return;
      loaded.add(path);
      for (const next of sources.find((source) => source.path === path)?.loads ?? []) load(next);
    };
    load('testing/index.ts');
    const outside = [...loaded].filter((name) => !name.endsWith('.ts') && !name.startsWith('node:'));
    const packages = [...new Set(outside.map((name) => name.replace(/^(@[^/]+\/)?([^/]+).*$/, '$1$2')))];
    expect(loaded).toContain('core/jose/jws.ts');
    expect(packages.toSorted()).toEqual(['@peculiar/x509', 'lru-cache']);
    expect(
      sources.filter(({ path, text }) => folderOf(path) === 'testing' && /^import\b(?! type).*explain/m.test(text)),
    ).toEqual([]);
    expect(sources.filter(({ text }) => /^import\b.*'@peculiar\/x509'/m.test(text)).map(({ path }) => path)).toEqual(
      [],
    );
  });

  it('nothing imports an index.ts, which holds re-exports alone', () => {
    const indexes = sources.filter(({ path }) => basename(path) === 'index.ts');
    expect(indexes.map(({ path }) => path)).toEqual(['index.ts', 'providers/index.ts', 'testing/index.ts']);
    expect(imports.filter(([, to]) => basename(to) === 'index.ts')).toEqual([]);
    for (const { text } of indexes) {
      const rest = text.replace(/export (?:type )?\{[^}]*\} from '[^']+';/g, '');
      expect(rest.trim()).toBe('');
    }
  });

  it('no file leads back to itself, types included', () => expect(findCycles(imports)).toEqual([]));
});

describe('imports of packages', () => {
  const read = (path: string): string => readFileSync(join(root, '..', path), 'utf8');
  // A `.d.ts` declares the modules that it has types for.
  const declared = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.d.ts'))
    .flatMap((path) =>
      Array.from(read(`src/${path}`).matchAll(/^declare module '([^']+)'/gm), ([, name = '']) => ({ path, name })),
    );
  const imported = sources.flatMap(({ path, modules }) => modules.map(({ name }) => ({ path, name })));

  /** Whether the package says that this path in it is public. */
  function isExported(name: string): boolean {
    const [, packageName = '', path = ''] = /^(@[^/]+\/[^/]+|[^@/][^/]*)\/(.+)$/.exec(name) ?? [];
    const { exports = {} } = JSON.parse(read(`node_modules/${packageName}/package.json`)) as { exports?: object };
    return Object.keys(exports).some((key) => {
      const [start = '', end] = key.split('*');
      const whole = `./${path}`;
      return end === undefined ? key === whole : whole.startsWith(start) && whole.endsWith(end);
    });
  }

  it('a path within a package → named by its exports', () => {
    const paths = [...imported, ...declared].filter(({ name }) => /^(?!node:)(?:@[^/]+\/)?[^@/][^/]*\/./.test(name));
    expect(imported.map(({ name }) => name)).toContain('hono/types');
    expect(isExported('hono/types')).toBe(true);
    expect(paths.filter(({ name }) => !isExported(name))).toEqual([]);
  });

  it('a module of Node → a public one', () => {
    const ofNode = imported.filter(({ name }) => name.startsWith('node:'));
    expect(ofNode.length).toBeGreaterThan(50);
    expect(
      ofNode.filter(({ name }) => !builtinModules.includes(name.slice(5)) || /^node:(?:_|internal)/.test(name)),
    ).toEqual([]);
  });
});

describe('what judges a request', () => {
  const pure = sources.filter(({ path }) =>
    /^core\/(?:(?:jose|http|token|policy|refusal)\/|dpop\/proof(?:-checks)?\.ts$|(?:checks|failures|refused)\.ts$)/.test(
      path,
    ),
  );
  // Calculation alone: no sockets, no files, no timers.
  const allowed: ReadonlyMap<string, readonly string[] | 'all'> = new Map<string, readonly string[] | 'all'>([
    ['node:crypto', 'all'],
    ['node:net', ['isIP', 'isIPv4', 'isIPv6', 'BlockList']],
    ['lru-cache', 'all'],
    ['@standard-schema/spec', ['StandardSchemaV1']], // a type
  ]);

  it('does no I/O: it imports nothing that could', () => {
    const suspects = pure.flatMap(({ path, modules }) =>
      modules
        .filter(({ name, names }) => {
          const permitted = allowed.get(name) ?? [];
          return permitted !== 'all' && (names.length === 0 || !names.every((each) => permitted.includes(each)));
        })
        .map(({ name, names }) => `${path}: ${name} {${names.join()}}`),
    );
    expect(pure.length).toBeGreaterThan(10);
    expect(suspects).toEqual([]);
  });

  it.each([
    ['reads no clock', /\bDate\b|\bperformance\b|\bhrtime\b/],
    ['starts no timer', /\bset(?:Timeout|Interval|Immediate)\b|\bqueueMicrotask\b/],
    ['waits for nothing', /\basync\b|\bawait\b/],
    ['calls nobody', /(?<![\w.])fetch\(/],
    ['knows no process', /\bprocess\./],
  ])('%s', (_claim, pattern) =>
    expect(pure.filter(({ text }) => pattern.test(text)).map(({ path }) => path)).toEqual([]),
  );
});

describe('what the core knows of the service', () => {
  const names = new Set(
    Object.values(settingTable).flatMap((row) =>
      Object.values(variants).map((variant) => environmentName(row, variant)),
    ),
  );
  /** Comments included: a library user reads these too. */
  const written = (path: string): readonly string[] =>
    readFileSync(join(root, path), 'utf8').match(/\b[A-Za-z][A-Za-z0-9_]*\b/g) ?? [];
  const below = sources.filter(({ path }) => rankOf(folderOf(path)) < rankOf('server'));

  it('no name of a setting is below server/', () => {
    expect(names.size).toBeGreaterThan(20);
    expect(written('server/settings/setting-table.ts')).toContain('LOG_IDENTITY');
    expect(
      below.flatMap(({ path }) =>
        written(path)
          .filter((word) => names.has(word))
          .map((word) => `${path}: ${word}`),
      ),
    ).toEqual([]);
  });

  it('every concept of a fix has a variable in every variant', () => {
    const concepts = Object.values<Failure>(failures).flatMap(({ concept }) => concept ?? []);
    expect(concepts.length).toBeGreaterThan(5);
    for (const variant of Object.values(variants)) {
      for (const concept of concepts) expect(names).toContain(nameSettings({ variant })[concept]);
    }
  });
});

describe('requests', () => {
  const sends =
    /^import \{[^}]*(?<!type )\brequest\b[^}]*\} from 'node:https?'|import\('node:https?'\)(?!\)\.createServer)|(?<![.\w])fetch\((?!\))/m;

  it('are sent by the client of core/outbound; elsewhere only as the proxy, and by the page', () => {
    const senders = sources
      .map(({ path }) => path)
      .filter((path) => sends.test(readFileSync(join(root, path), 'utf8').replace(/\/\*.*?\*\//gs, '')));
    expect(senders.filter((path) => !path.startsWith('core/outbound/')).toSorted()).toEqual([
      'console/page/fetching.ts',
      'gate/proxy/request-forwarding.ts',
    ]);
  });
});

describe('the tests', () => {
  const list = (path: string): readonly string[] =>
    readdirSync(new URL(path, import.meta.url), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  const others = words(`
    bench catalogue deploy differential examples isolation migration properties run-summary runtimes site support
    vectors
  `);

  it('mirror the sources: a folder is one of src, or one of a few more', () => {
    const folders = list('.');
    expect(folders.length).toBeGreaterThan(15);
    expect(folders.filter((name) => !others.includes(name) && !list('../src').includes(name))).toEqual([]);
    for (const name of ['core', 'server']) {
      expect(list(name).filter((each) => !list(`../src/${name}`).includes(each))).toEqual([]);
    }
  });

  it('hold every folder of src to a share of its branches, and give a reason for each below 100 %', () => {
    const folders = new Set(sources.map(({ path }) => dirname(path)));
    folders.delete('.');
    expect(Object.keys(coverageFloors).toSorted()).toEqual([...folders].toSorted());
    for (const [folder, [branches, reason = '']] of Object.entries(coverageFloors)) {
      expect([folder, branches === 100 || reason.endsWith('.')]).toEqual([folder, true]);
    }
  });

  it('have a map that names every folder', () => {
    const map = readFileSync(new URL('README.md', import.meta.url), 'utf8');
    const isNamed = (name: string): boolean => map.includes(`\`${name}\``) || map.includes(`/${name}\``);
    expect([...list('.'), ...list('core'), ...list('server')].filter((name) => !isNamed(name))).toEqual([]);
  });
});

describe('the layout in CONTRIBUTING.md', () => {
  const [, tree = ''] = /^```\n(src\/\n[\s\S]*?)^```/m.exec(readFileSync('CONTRIBUTING.md', 'utf8')) ?? [];

  /** Paths of the tree, from its indentation. */
  function listPaths(): readonly string[] {
    const folders: string[] = [];
    return tree.split('\n').flatMap((line) => {
      const [, indent = '', name] = /^( *)(\S+)/.exec(line) ?? [];
      if (name === undefined) return [];
      folders.splice(indent.length / 2, Number.POSITIVE_INFINITY, name);
      return [folders.join('')];
    });
  }

  it('has a line for each folder of src and tools and each file at the top of src and core, and no other', () => {
    const folders = sources.flatMap(({ path }) =>
      path.split('/').map(
        (_, depth, names) =>
          `src/${names
            .slice(0, depth)
            .map((name) => `${name}/`)
            .join('')}`,
      ),
    );
    const files = sources.map(({ path }) => `src/${path}`).filter((path) => /^src\/(?:core\/)?[^/]+$/.test(path));
    const tools = readdirSync('tools').map((name) => `tools/${name}/`);
    const others = ['test', 'deploy', 'docs', 'examples', 'schema'].map((name) => `${name}/`);
    expect(listPaths().toSorted()).toEqual([...new Set([...folders, ...files, ...tools, ...others])].toSorted());
  });

  it('says what each is', () => {
    for (const line of tree.trimEnd().split('\n').slice(1)) expect(line).toMatch(/^ *\S+ +\S+/);
  });
});

describe('sizes', () => {
  const lines = new Map(
    sources.map(({ path }) => [path, readFileSync(join(root, path), 'utf8').split('\n').length - 1] as const),
  );
  const count = (isCounted: (path: string) => boolean): number =>
    [...lines].reduce((sum, [path, length]) => sum + (isCounted(path) ? length : 0), 0);

  // Each number may fall; a commit that raises one gives the reason.
  it('the core: at most 12,642 lines; the console: 1976; all sources: at most 40,824', () => {
    expect(count((path) => folderOf(path) === 'core')).toBeLessThanOrEqual(12_642);
    expect(count((path) => /^(?:server\/)?console\//.test(path))).toBeLessThanOrEqual(1976);
    expect(count(() => true)).toBeLessThanOrEqual(40_824);
  });

  it('tests: at most 70,110 lines; tools: at most 10,910', () => {
    const countBelow = (folder: string): number =>
      readdirSync(new URL(`../${folder}/`, import.meta.url), { recursive: true, encoding: 'utf8' })
        .filter((path) => /\.(?:ts|js|lua|grit)$/.test(path) && !path.includes('node_modules'))
        .reduce(
          (sum, path) =>
            sum + readFileSync(new URL(`../${folder}/${path}`, import.meta.url), 'utf8').split('\n').length - 1,
          0,
        );
    expect(countBelow('test') + countBelow('examples/test')).toBeLessThanOrEqual(70_110);
    expect(countBelow('tools')).toBeLessThanOrEqual(10_910);
  });

  it('a file: at most 300 lines, except closed tables', () => {
    const long = [...lines].filter(([, length]) => length > 300);
    expect(long.map(([path]) => path)).toEqual(['core/failures.ts', 'server/settings/setting-table.ts']);
  });

  it('a folder: at most 15 files', () => {
    const files = new Map<string, number>();
    for (const { path } of sources) files.set(dirname(path), (files.get(dirname(path)) ?? 0) + 1);
    const large = [...files].filter(([, number]) => number > 15);
    expect(Object.fromEntries(large)).toEqual({});
  });
});

describe('house rules', () => {
  it('no file without a noun for a name', () => {
    const names = sources.map(({ path }) => basename(path, '.ts'));
    expect(names.filter((name) => /^(?:utils?|helpers?|types?|common|misc|shared|lib)$/.test(name))).toEqual([]);
    expect(names.filter((name) => !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name))).toEqual([]);
  });

  it('no deep import: of a package, only its name and what its `exports` names', () => {
    const deep = sources.flatMap(({ path, modules }) =>
      modules.flatMap(({ name }) => {
        const [, pack = '', subpath = ''] = /^((?:@[^/]+\/)?[^/:]+)(\/.+)?$/.exec(name) ?? [];
        if (subpath === '') return [];
        const manifest = readFileSync(new URL(`../node_modules/${pack}/package.json`, import.meta.url), 'utf8');
        const { exports = {} } = JSON.parse(manifest) as { readonly exports?: Readonly<Record<string, unknown>> };
        // `./*` of the MCP SDK names every file.
        const isNamed = Object.hasOwn(exports, `.${subpath}`) || Object.hasOwn(exports, './*');
        return isNamed ? [] : [`${path}: ${name}`];
      }),
    );
    expect(deep).toEqual([]);
  });

  it('no default export', () =>
    expect(sources.filter(({ text }) => /^export default\b/m.test(text)).map(({ path }) => path)).toEqual([]));

  it('nothing asks which variant it is: variants are data', () => {
    const asking = /\bvariant(?:\.name|Name)?\s*[!=]==?|[!=]==?\s*(?:variants\.\w|'[ab]')|\bswitch\s*\(\w*variant/i;
    expect(sources.filter(({ text }) => asking.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('signatures are checked in one place', () => {
    const verifying = sources.filter(({ modules }) =>
      modules.some(
        ({ name, names }) => /crypto$/.test(name) && names.some((each) => /^(?:verify|createVerify)$/.test(each)),
      ),
    );
    expect(verifying.map(({ path }) => path)).toEqual(['core/jose/jws.ts']);
  });

  it('signatures are made in one place: for tools and tests', () => {
    const signing = sources.filter(({ modules }) =>
      modules.some(
        ({ name, names }) => /crypto$/.test(name) && names.some((each) => /^(?:sign|createSign)$/.test(each)),
      ),
    );
    expect(signing.map(({ path }) => path)).toEqual(['core/jose/sign.ts']);
  });

  it.each([
    ['proof algorithms', /'ES256', 'ES384', 'EdDSA'/, 'core/jose/jws.ts'],
    ['refused header parameters', /'crit', 'b64'/, 'core/jose/jws.ts'],
    ['the latest time', /\b1e11\b/, 'core/jose/json.ts'],
    ['the length of a kid', /\bmaxKidLength =/, 'core/jose/jws.ts'],
    ['a JWK set', /^export (?:type|interface) JwkSet\b/m, 'core/jose/jwk.ts'],
    ['accepted schemes', /\['Bearer', 'DPoP'\];/, 'core/http/credentials.ts'],
    ['a plain https address', /\bfunction isPlainHttps\b|password === ''/, 'core/outbound/https-address.ts'],
    ['a URL without its user information', /\*\*\*@/, 'core/http/shown-url.ts'],
    ['a proof', /typ: 'dpop\+jwt'/, 'core/jose/signed-proof.ts'],
    ['the address of a proxy', /\bdecodeURIComponent\(username/, 'core/outbound/https-address.ts'],
    ['the grammar of a domain', /\[a-z0-9\._-\]\*\[a-z0-9\]/, 'core/resource-server/issuers/trusted-issuer.ts'],
  ])('one place says it: %s', (_what, pattern, path) =>
    expect(sources.filter(({ text }) => pattern.test(text)).map((source) => source.path)).toEqual([path]),
  );

  it('one door: only it turns settings and compiled rules into a resource server', () => {
    const opening = sources.filter(
      ({ path, text }) =>
        /^(?:server|serve|gate|console|dev|cli)\//.test(path) && /\bcreate(?:Any)?ResourceServer\(\{/.test(text),
    );
    expect(opening.map(({ path }) => path)).toEqual([
      'cli/explain/explainer.ts', // without settings: --issuer and --audience, or nothing but a token
      'dev/dev-announcement.ts', // a line to copy
      'dev/provider/token-exchange.ts', // the provider's own endpoint
      'gate/review/rule-cases.ts', // tokens that the test of rules signs itself
      'server/process/open-resource-server.ts',
    ]);
  });

  it('what commands and the log print of a URL goes through showUrl', () => {
    // A command to be copied has the URL as it is called.
    const copied = new Set(['dev/curl-command.ts', 'dev/tries/tries.ts']);
    const printed = sources.filter(
      ({ path, text }) => !copied.has(path) && /\$\{[^{}]*(?<!showUrl\([^()]*)\.href\b/.test(text),
    );
    expect(printed.map(({ path }) => path)).toEqual([]);
  });
});

/** A function that is too long, with its lines. Lengths may only fall, and no function may be added. */
const longFunctions: Readonly<Record<string, number>> = {
  'core/introspection/fair-calls.ts createFairCalls': 96,
  'core/keys/key-set.ts resumeKeySet': 138,
  'core/resource-server/judgement.ts createJudge': 148,
  'core/revocation/cutoffs.ts createCutoffs': 123,
  'core/revocation/redis-store.ts createRedisRevocationStore': 137,
  'dev/provider/provider.ts configure': 104,
  'gate/gate-servers.ts createGateServers': 92,
  'gate/gate.ts createGate': 124,
  'gate/proxy/gate-proxy-app.ts createGateProxyApp': 92,
  'server/listener/http-server.ts createHttpServer': 176,
  'server/observation/log.ts createLog': 88,
};
const maxLines = 80;

/** The lines of each function with a name, or in what has one. */
function listLengths(text: string): readonly (readonly [name: string, lines: number])[] {
  const lengths: (readonly [string, number])[] = [];
  const visit = (value: unknown, outer: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const node = value as Readonly<Record<string, unknown>>; // a node, or a list of nodes
    const { type, start, end } = node;
    const named = Object(node['id'] ?? node['key']) as { readonly name?: string };
    const name = named.name ?? outer;
    if (/Function/.test(String(type)) && node['body']) {
      lengths.push([name, text.slice(Number(start), Number(end)).split('\n').length]);
    }
    for (const inner of Object.values(node)) visit(inner, name);
  };
  visit(parseAst(text, { lang: 'ts' }).body, '');
  return lengths;
}

describe('length of functions', () => {
  it(`at most ${maxLines} lines; longer ones only where listed, and not longer than there`, () => {
    const long: Record<string, number> = {};
    const grown: string[] = [];
    for (const { path } of sources) {
      for (const [name, lines] of listLengths(readFileSync(join(root, path), 'utf8'))) {
        if (lines <= maxLines) continue;
        long[`${path} ${name}`] = lines;
        const most = longFunctions[`${path} ${name}`] ?? maxLines;
        if (lines > most) grown.push(`${path} ${name}: ${lines} lines, at most ${most}`);
      }
    }
    expect(grown).toEqual([]);
    expect(Object.keys(longFunctions).filter((name) => long[name] === undefined)).toEqual([]); // remove these
  });

  it('closures, methods and functions in members → each is measured', () => {
    const body = `{\n${'void 0;\n'.repeat(2)}}`;
    const text = `function a() ${body}\nconst b = () => ${body};\nclass C { d() ${body} }\nconst e = { f: () => { const g = () => ${body}; } };`;
    expect(listLengths(text)).toEqual([
      ...[
        ['a', 4],
        ['b', 4],
        ['d', 4],
        ['f', 4],
        ['g', 4],
      ],
    ]);
  });
});
