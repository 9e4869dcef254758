import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { copyFiles, listCopies, pages, referencePage } from './support/pages.ts';
import { readmeTables } from './support/readme-tables.ts';
import { writeReference } from './support/reference.ts';

const place = /<!-- table: (\w+) -->\n([\s\S]*?)<!-- end -->/g;
const withTables = [...pages, 'CONTRIBUTING.md'];

// `npm run docs` writes tables, copies of files and the reference anew.
if (process.env['UPDATE_DOCS'] !== undefined) {
  writeFileSync(referencePage, writeReference());
  for (const page of withTables) {
    const text = readFileSync(page, 'utf8').replace(
      place,
      (_, name: string) => `<!-- table: ${name} -->\n${readmeTables[name] ?? ''}\n<!-- end -->`,
    );
    writeFileSync(page, copyFiles(text));
  }
}

const places = withTables.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(place)].map(([, name = '', text = '']) => ({ page, name, text })),
);

/** Types of the language, of Node and of frameworks, and parameters of types that have a word for a name. */
const foreign = new Set(
  `AbortSignal AsyncDisposable AsyncIterable Buffer Date Error Exclude Extract KeyObject NoInfer Omit Parameters Partial Pick Promise PromiseLike
  Readonly ReadonlyMap ReadonlySet Record Request Required Response StandardSchemaV1 Symbol Uint8Array WeakMap
  IncomingMessage RequestListener ServerResponse ErrorRequestHandler NextFunction RequestHandler
  FastifyInstance FastifyPluginCallback FastifyRequest FastifyReply RouteGenericInterface
  BlankInput Context Env ErrorHandler Handler Input MiddlewareHandler Next ValidationTargets
  CanActivate ClassDecorator ExecutionContext MethodDecorator ParameterDecorator OAuthTokenVerifier
  First Name Params Rep Req Rest Text Variables`.split(/\s+/),
);

describe('tables of the documentation', () => {
  it.each(Object.entries(readmeTables))(
    '%s: stands in the documentation, and says what the code says',
    (name, expected) => {
      const found = places.filter((each) => each.name === name);
      expect(found.length).toBeGreaterThan(0);
      for (const { text } of found) expect(text).toBe(`${expected}\n`);
    },
  );

  it('no place asks for a table that is not made', () => {
    expect(places.map(({ name }) => name).filter((name) => !Object.hasOwn(readmeTables, name))).toEqual([]);
  });
});

describe('copies of files', () => {
  const copying = pages.filter((page) => listCopies(readFileSync(page, 'utf8')).length > 0);

  it('are found', () => {
    expect(copying.length).toBeGreaterThan(5);
  });

  it.each(copying)('%s: say what the files say', (page) => {
    const text = readFileSync(page, 'utf8');
    expect(text).toBe(copyFiles(text));
  });
});

describe(referencePage, () => {
  const text = readFileSync(referencePage, 'utf8');
  const sections = text.split(/^### /m).slice(1);
  const codeOf = (name: string): string =>
    sections.find((section) => section.startsWith(`\`${name}\`\n`))?.match(/^```ts\n([\s\S]*?)^```/m)?.[1] ?? '';

  it.each([
    ['KeySetEvent', ['fetched', 'failed', 'dropped', 'insecure']],
    ['ResourceServerEvent', ['keys', 'insecure', 'refused']],
  ])('%s: has every member of the union', (name, types) => {
    expect([...codeOf(name).matchAll(/^ {0,3}readonly type: '(\w+)'/gm)].map(([, type]) => type)).toEqual(types);
  });

  it.each(['OutboundOptions', 'DiscoveryFallback', 'JsonObject'])(
    '%s: is there, though no entry point exports it',
    (name) => {
      expect(codeOf(name)).toContain(name);
    },
  );

  it('every export has a sentence of its own, which editors show', () => {
    const [exported = ''] = text.split('## Types that these use');
    const bare = exported
      .split(/^### /m)
      .slice(1)
      .filter((section) => /^`\w+`\n\n```/.test(section));
    expect(bare.map((section) => section.split('\n')[0])).toEqual([]);
  });

  it('every code of a declaration is whole', () => {
    for (const section of sections) {
      const [, code = ''] = /^```ts\n([\s\S]*?)^```/m.exec(section) ?? [];
      expect(code.trimEnd(), section.split('\n')[0]).toMatch(/[;}]$/);
      const bare = code.replace(/\/\*[\s\S]*?\*\/|\/\/.*|'[^']*'/g, '');
      expect((bare.match(/[({[]/g) ?? []).length, section.split('\n')[0]).toBe((bare.match(/[)}\]]/g) ?? []).length);
    }
  });

  it('every type that a declaration uses is on the page, or of the language, Node or a framework', () => {
    const here = new Set(sections.map((section) => /^`(\w+)`/.exec(section)?.[1]));
    const used = sections.flatMap((section) => {
      const [, code = ''] = /^```ts\n([\s\S]*?)^```/m.exec(section) ?? [];
      return code.replace(/\/\*[\s\S]*?\*\/|\/\/.*|'[^']*'/g, '').match(/\b[A-Z][a-z]\w*\b/g) ?? [];
    });
    expect([...new Set(used)].filter((name) => !here.has(name) && !foreign.has(name)).toSorted()).toEqual([]);
  });

  it('says what the declarations of the build say', () => {
    expect(readFileSync(referencePage, 'utf8')).toBe(writeReference());
  });
});

describe('links of the documentation', () => {
  const links = pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => ({
      page,
      target,
    })),
  );

  it.each(links)('$page → $target exists', ({ page, target }) => {
    const path = new URL(target, `file://${process.cwd()}/${page}`);
    expect(() => readFileSync(path)).not.toThrow(/ENOENT/);
  });
});
