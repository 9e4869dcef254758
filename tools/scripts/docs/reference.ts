import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { parseSync } from 'rolldown/utils';

/** One export, as its declaration file has it. */
interface Declaration {
  readonly name: string;
  /** Without its own comment. */
  readonly code: string;
  /** The comment above it, as text. */
  readonly comment: string;
  /** The declaration file that has it. */
  readonly file: string;
}

/** Statements that declare a name, or export it from another file. */
const declared =
  /^(?:export )?(?:declare )?(?:abstract )?(?:function|const|let|class|interface|type|namespace) ([\w$]+)/;
const handedOn = /^export (?:type )?\{([^}]*)\} from '([^']+)';/;

/** Reads the statements of a declaration file, each with the comment above it, as text. */
function readStatements(path: string): readonly { readonly code: string; readonly comment: string }[] {
  const text = readFileSync(path, 'utf8');
  const { program, comments } = parseSync(path, text);
  return program.body.map(({ start, end }, index) => {
    const from = program.body[index - 1]?.end ?? 0;
    const above = comments.findLast((comment) => comment.start >= from && comment.end <= start);
    return { code: text.slice(start, end), comment: readComment(above?.value ?? '') };
  });
}

function fail(path: string, code: string): never {
  throw new Error(`${path} does not declare ${code}`);
}

/** The text of a doc comment; empty for another comment. */
function readComment(value: string): string {
  if (!value.startsWith('*')) return '';
  return value
    .replace(/^\*\s?|\s*$/g, '')
    .replace(/^ \* ?/gm, '')
    .replace(/\{@link ([^}]+)\}/g, '`$1`')
    .trim();
}

/** The exports of a declaration file, with re-exports. */
function readDeclarations(path: string): readonly Declaration[] {
  return readStatements(path).flatMap(({ code, comment }): readonly Declaration[] => {
    const [, names, from] = handedOn.exec(code) ?? [];
    if (names !== undefined && from !== undefined) {
      const file = posix.join(posix.dirname(path), from.replace(/\.[tj]s$/, '.d.ts'));
      const others = readDeclarations(file);
      return names
        .split(',')
        .map((name) => name.trim().replace(/^type /, ''))
        .filter((name) => name !== '')
        .map((name) => others.find((other) => other.name === name) ?? fail(file, name));
    }
    const name = declared.exec(code)?.[1];
    return code.startsWith('export ') && name !== undefined ? [{ name, code, comment, file: path }] : [];
  });
}

const imported = /^import (?:type )?\{([^}]*)\} from '(\.[^']+)';/;

/** The declaration of a name that a file uses: its own, or one that it imports from another of our files. */
function findDeclaration(file: string, name: string): Declaration | undefined {
  for (const { code, comment } of readStatements(file)) {
    if (declared.exec(code)?.[1] === name) return { name, code, comment, file };
    const [, names = '', from = ''] = imported.exec(code) ?? [];
    if (names.split(',').some((each) => each.trim().replace(/^type /, '') === name)) {
      return findDeclaration(posix.join(posix.dirname(file), from.replace(/\.[tj]s$/, '.d.ts')), name);
    }
  }
  return undefined;
}

/** Names of types in code, without comments and strings. */
function namesIn(code: string): readonly string[] {
  return code.replace(/\/\*[\s\S]*?\*\/|\/\/.*|'(?:[^'\\\n]|\\.)*'/g, '').match(/\b[A-Z]\w*\b/g) ?? [];
}

/** Types that declarations use and no entry point exports, with those that these use. */
function readUsed(declarations: readonly Declaration[]): readonly Declaration[] {
  const known = new Set(declarations.map(({ name }) => name));
  const used: Declaration[] = [];
  const waiting = [...declarations];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const name of namesIn(next.code)) {
      if (known.has(name)) continue;
      const found = findDeclaration(next.file, name);
      if (found === undefined) continue; // of another package, or a parameter
      known.add(name);
      used.push(found);
      waiting.push(found);
    }
  }
  return used.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function formatDeclaration({ name, code, comment }: Declaration): string {
  const [about = '', example] = comment.split(/^@example\n/m);
  const signature = code
    .replace(/^(?:export )?(?:declare )?/, '')
    .replace(/^(const \w+: )\{\n.*\};$/s, '$1{ … };') // a table that another page has
    .replace(/^( +)/gm, (spaces) => ' '.repeat(spaces.length / 2));
  return [
    `### \`${name}\``,
    ...(about === '' ? [] : [about.trim()]),
    `\`\`\`ts\n${signature}\n\`\`\``,
    ...(example === undefined ? [] : [`\`\`\`ts\n${example.trim()}\n\`\`\``]),
  ].join('\n\n');
}

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

/** The reference of every subpath export, from the declaration files of the build. */
export function writeReference(): string {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest; // ours
  const entries = Object.entries(exports).flatMap(([subpath, target]) => {
    if (typeof target === 'string') return [];
    const name = posix.join('portcullis', subpath);
    return [{ name, declarations: readDeclarations(target.types.replace(/^\.\//, '')) }];
  });
  const written = new Set<string>();
  const isNew = (text: string): boolean => written.size < written.add(text).size;
  const parts = entries.flatMap(({ name, declarations }) => {
    // Values first: they are what is called.
    const isType = ({ code }: Declaration): boolean => /^export (?:interface|type) /.test(code);
    const ordered = [...declarations.filter((each) => !isType(each)), ...declarations.filter(isType)];
    return [`## \`${name}\``, ...ordered.map(formatDeclaration).filter(isNew)];
  });
  const used = readUsed(entries.flatMap(({ declarations }) => declarations));
  const preface =
    'Every export of every entry point, from the declarations that the package ships; one of several entry points is below the first. `npm run docs` writes this page. The values of `failures` are in [refused requests](refusals.md), the values of the presets in [providers](providers.md).';
  const note = 'They are not exported: `Parameters`, `ReturnType` and members reach them.';
  const others = ['## Types that these use', note, ...used.map(formatDeclaration)];
  return `# Reference\n\n${preface}\n\n${[...parts, ...others].join('\n\n')}\n`;
}
