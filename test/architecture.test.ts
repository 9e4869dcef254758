import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

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

/** The folder of a file, or the file itself where it lies at the top. */
function partOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : path;
}

// Each may import what stands on its own line or further down.
const layers: readonly (readonly string[])[] = [
  ['cli'],
  ['local-idp'],
  ['service'],
  ['console'],
  ['index.ts'],
  ['adapters'],
  ['resource-server'],
  ['testing'],
  ['refusal'],
  ['policy'],
  ['token'],
  ['keys', 'token-status'],
  ['outbound', 'dpop'],
  ['jose', 'http'],
  ['failures.ts', 'platform.ts', 'certificate'],
];
const layerOf = (path: string): number => layers.findIndex((parts) => parts.includes(partOf(path)));

const imports = sources.flatMap(({ path, files }) => files.map((file) => [path, file] as const));

describe('direction of imports', () => {
  it('the sources are read: files, and imports between them', () => {
    expect(sources.length).toBeGreaterThan(30);
    expect(imports).toContainEqual(['token/access-token.ts', 'failures.ts']);
    expect(imports).toContainEqual(['token/access-token.ts', 'keys/key-set.ts']); // a type-only one
    expect(imports).toContainEqual(['cli/main.ts', 'cli/serve.ts']); // a dynamic one
    for (const { path, text, files, modules } of sources) {
      const written = text.match(/(?:\bfrom |^import |\bimport\()'/gm) ?? [];
      expect(files.length + modules.length, path).toBe(written.length);
    }
  });

  it('every file belongs to a layer', () => {
    expect(sources.map(({ path }) => path).filter((path) => layerOf(path) < 0)).toEqual([]);
  });

  it('every import of a file leads to one that exists, by its .ts name', () => {
    const paths = new Set(sources.map(({ path }) => path));
    expect(imports.filter(([, file]) => !paths.has(file))).toEqual([]);
  });

  it('cli → service → adapters → resource-server → core → failures, and never back', () => {
    expect(imports.filter(([from, to]) => layerOf(to) < layerOf(from))).toEqual([]);
  });

  it('the local provider is imported by cli alone, and knows neither service nor adapters', () => {
    const around = imports.filter(([from, to]) => partOf(from) !== partOf(to));
    expect(around.filter(([from, to]) => partOf(to) === 'local-idp' && partOf(from) !== 'cli')).toEqual([]);
    expect(
      around.filter(
        ([from, to]) => partOf(from) === 'local-idp' && ['service', 'cli', 'adapters'].includes(partOf(to)),
      ),
    ).toEqual([]);
  });

  it('the test kit is imported by nothing, and loads nothing but Node and, to listen, what makes certificates', () => {
    expect(imports.filter(([from, to]) => partOf(to) === 'testing' && partOf(from) !== 'testing')).toEqual([]);
    const loaded = new Set<string>();
    const load = (path: string): void => {
      if (loaded.has(path)) return;
      loaded.add(path);
      for (const next of sources.find((source) => source.path === path)?.loads ?? []) load(next);
    };
    load('testing/index.ts');
    const packages = [...loaded].filter((name) => !name.endsWith('.ts') && !name.startsWith('node:'));
    expect(loaded).toContain('jose/algorithms.ts');
    expect(packages).toEqual(['@peculiar/x509']);
    expect(sources.filter(({ text }) => /^import\b.*'@peculiar\/x509'/m.test(text)).map(({ path }) => path)).toEqual(
      [],
    );
  });

  it('nothing imports an index.ts, which holds re-exports alone', () => {
    const indexes = sources.filter(({ path }) => basename(path) === 'index.ts');
    expect(indexes.map(({ path }) => path)).toEqual(['index.ts', 'testing/index.ts']);
    expect(imports.filter(([, to]) => basename(to) === 'index.ts')).toEqual([]);
    for (const { text } of indexes) {
      const rest = text.replace(/export (?:type )?\{[^}]*\} from '[^']+';/g, '');
      expect(rest.trim()).toBe('');
    }
  });

  it('no file leads back to itself, types included', () => {
    const edges = new Map(sources.map(({ path, files }) => [path, files]));
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (path: string, way: readonly string[]): void => {
      if (way.includes(path)) cycles.push([...way.slice(way.indexOf(path)), path].join(' → '));
      if (way.includes(path) || done.has(path)) return;
      for (const next of edges.get(path) ?? []) visit(next, [...way, path]);
      done.add(path);
    };
    for (const { path } of sources) visit(path, []);
    expect(cycles).toEqual([]);
  });
});

describe('what judges a request', () => {
  const pure = sources.filter(({ path }) =>
    /^(?:jose|http|token|policy|refusal)\/|^dpop\/proof\.ts$|^failures\.ts$/.test(path),
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
  ])('%s', (_claim, pattern) => {
    expect(pure.filter(({ text }) => pattern.test(text)).map(({ path }) => path)).toEqual([]);
  });
});

describe('house rules', () => {
  it('no file without a noun for a name', () => {
    const names = sources.map(({ path }) => basename(path, '.ts'));
    expect(names.filter((name) => /^(?:utils?|helpers?|types?|common|misc|shared|lib)$/.test(name))).toEqual([]);
    expect(names.filter((name) => !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name))).toEqual([]);
  });

  it('no default export', () => {
    expect(sources.filter(({ text }) => /^export default\b/m.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('nothing asks which variant it is: variants are data', () => {
    const asking = /\bvariant(?:\.name|Name)?\s*[!=]==?|[!=]==?\s*(?:variants\.\w|'[ab]')|\bswitch\s*\(\w*variant/i;
    expect(sources.filter(({ text }) => asking.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('signatures are checked in one place, and in another on Workers', () => {
    const verifying = sources.filter(({ modules }) =>
      modules.some(
        ({ name, names }) => /crypto$/.test(name) && names.some((each) => /^(?:verify|createVerify)$/.test(each)),
      ),
    );
    expect(verifying.map(({ path }) => path)).toEqual(['jose/jws.ts', 'jose/workerd-signature.ts']);
  });
});
