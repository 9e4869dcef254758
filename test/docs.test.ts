import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { generatedFiles, tablePlace, writtenPages } from '../tools/scripts/docs/generated.ts';
import { readmeTables } from '../tools/scripts/docs/readme-tables.ts';
import { listCopies, pages, referencePage } from './support/pages.ts';

/** Types of the language, of Node and of frameworks, and parameters of types that have a word for a name. */
const foreign = new Set(
  `AbortSignal AsyncDisposable AsyncIterable Buffer Date Error Exclude Extract Iterable JsonWebKey KeyObject NoInfer Omit Parameters Partial Pick Promise PromiseLike
  Readonly ReadonlyMap ReadonlySet Record Request Required Response StandardSchemaV1 Symbol Uint8Array WeakMap
  IncomingMessage RequestListener ServerResponse ErrorRequestHandler NextFunction RequestHandler
  FastifyInstance FastifyPluginCallback FastifyRequest FastifyReply RouteGenericInterface
  BlankInput Context Env ErrorHandler Handler Input MiddlewareHandler Next ValidationTargets
  CanActivate ClassDecorator DynamicModule ExecutionContext FactoryProvider MethodDecorator ModuleMetadata ParameterDecorator OAuthTokenVerifier
  First Name Params Rep Req Rest Text Variables`.split(/\s+/),
);

describe('generated files (npm run docs)', () => {
  it.each([...generatedFiles])('%s is current', (path, write) => expect(readFileSync(path, 'utf8')).toBe(write()));

  it('every table is on a page, and some pages copy files', () => {
    const text = writtenPages.map((page) => readFileSync(page, 'utf8')).join('\n');
    const placed = [...text.matchAll(tablePlace)].map(([, name = '']) => name);
    expect(Object.keys(readmeTables).filter((name) => !placed.includes(name))).toEqual([]);
    expect(listCopies(text).length).toBeGreaterThan(5);
  });
});

describe(referencePage, () => {
  const text = readFileSync(referencePage, 'utf8');
  const sections = text.split(/^### /m).slice(1);
  const codeOf = (name: string): string =>
    sections.find((section) => section.startsWith(`\`${name}\`\n`))?.match(/^```ts\n([\s\S]*?)^```/m)?.[1] ?? '';

  it.each([
    ['KeySetEvent', ['fetched', 'failed', 'dropped', 'insecure']],
    ['ResourceServerEvent', ['keys', 'insecure', 'granted', 'refused']],
  ])('%s: has every member of the union', (name, types) =>
    expect([...codeOf(name).matchAll(/^ {0,3}readonly type: '(\w+)'/gm)].map(([, type]) => type)).toEqual(types),
  );

  it.each(['OutboundOptions', 'DiscoveryFallback', 'JsonObject'])(
    '%s: is there, though no entry point exports it',
    (name) => expect(codeOf(name)).toContain(name),
  );

  it('every export has its own sentence, which editors show', () => {
    const [exported = ''] = text.split('## Types that these use');
    const bare = exported
      .split(/^### /m)
      .slice(1)
      .filter((section) => /^`\w+`\n\n```/.test(section));
    expect(bare.map((section) => section.split('\n')[0])).toEqual([]);
  });

  // Narrowed members, whose comments editors show from the type that they are intersected with.
  const narrowing = new Set(['Recipients', 'IssuerWithRecipients', 'Issuers', 'ResourceServerOptions']);

  it('a member → its own doc comment, or the one of the value that contains it', () => {
    const bare: string[] = [];
    for (const section of sections) {
      const [title = '', ...lines] = section.split('\n').filter((line) => line.trim() !== '');
      const code = lines.slice(lines.indexOf('```ts') + 1, lines.indexOf('```'));
      if (narrowing.has(title.replaceAll('`', ''))) continue;
      let described = Number.POSITIVE_INFINITY; // the indentation of a value with a comment
      for (const [index, line] of code.entries()) {
        const depth = line.search(/\S/);
        if (depth <= described) described = Number.POSITIVE_INFINITY;
        const [, name] = /^ +(?:static |get |readonly )*(\[[^\]]+\]|[\w$]+)\??[(:<]/.exec(line) ?? [];
        if (name === undefined || depth > described || /readonly name = |\[K in /.test(line)) continue;
        // A pattern that a type is compared with has no member to read.
        if (!/(?:\*\/|extends \{|Exclude<\w+, \{)$/.test(code[index - 1] ?? '')) bare.push(`${title} ${name}`);
        described = depth;
      }
    }
    expect(bare).toEqual([]);
  });

  it('every code of a declaration is whole', () => {
    for (const section of sections) {
      const [, code = ''] = /^```ts\n([\s\S]*?)^```/m.exec(section) ?? [];
      expect(code.trimEnd(), section.split('\n')[0]).toMatch(/[;}]$/);
      const bare = code.replace(/\/\*[\s\S]*?\*\/|\/\/.*|'[^']*'|"[^"]*"/g, '');
      expect((bare.match(/[({[]/g) ?? []).length, section.split('\n')[0]).toBe((bare.match(/[)}\]]/g) ?? []).length);
    }
  });

  it('every type that a declaration uses is on the page, or of the language, Node or a framework', () => {
    const here = new Set(sections.map((section) => /^`(\w+)`/.exec(section)?.[1]));
    const used = sections.flatMap((section) => {
      const [, code = ''] = /^```ts\n([\s\S]*?)^```/m.exec(section) ?? [];
      return code.replace(/\/\*[\s\S]*?\*\/|\/\/.*|'[^']*'|"[^"]*"/g, '').match(/\b[A-Z][a-z]\w*\b/g) ?? [];
    });
    expect([...new Set(used)].filter((name) => !here.has(name) && !foreign.has(name)).toSorted()).toEqual([]);
  });
});

describe('guides', () => {
  // What is looked up: exports, reasons, checks, settings, figures, and the list of all pages.
  const lookedUp = /^docs\/(?:evidence\/|(?:README|reference|refusals|causes|settings|performance)\.md$)/;

  it('at most 26, so that what two pages would say is said once', () =>
    expect(pages.filter((page) => page.startsWith('docs/') && !lookedUp.test(page)).length).toBeLessThanOrEqual(26));
});

describe('pages of frameworks', () => {
  const frameworks = pages.filter((page) => page.startsWith('docs/frameworks/')).map((page) => [page, 120] as const);
  it.each([...frameworks, ['AGENTS.md', 150] as const])('%s → at most %i lines', (page, most) =>
    expect(readFileSync(page, 'utf8').split('\n').length - 1).toBeLessThanOrEqual(most),
  );
});

/** Anchors of a page as GitHub makes them of headings, and those of `<a id="…">`. */
function readAnchors(page: string): ReadonlySet<string> {
  const text = readFileSync(page, 'utf8').replace(/^```[\s\S]*?^```/gm, '');
  const anchors = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id));
  const seen = new Map<string, number>();
  for (const [, heading = ''] of text.matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = plain.replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-');
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}

describe('links of the documentation', () => {
  // The evidence is not in the package, so pages of the package link to it by its address in the repository.
  const repository = 'https://github.com/portcullis-oauth/portcullis/blob/main/';
  const linking = [...pages, 'CONTRIBUTING.md', 'SECURITY.md', 'UPGRADE.md'];
  const links = linking.flatMap((page) =>
    [
      ...readFileSync(page, 'utf8')
        .replace(/^```[\s\S]*?^```/gm, '')
        .matchAll(/(?<!`)\]\(([^)\s]+)[^)]*\)/g),
    ]
      .map(([, target = '']) => target)
      .filter((target) => !/^(https?|mailto):/.test(target) || target.startsWith(repository))
      .map((target) => ({
        page,
        target,
        url: target.startsWith(repository)
          ? new URL(target.slice(repository.length), `file://${process.cwd()}/`)
          : new URL(target, `file://${process.cwd()}/${page}`),
      })),
  );

  it('anchors are read: of headings', () => {
    expect(links.length).toBeGreaterThan(100);
    expect(readAnchors('docs/refusals.md')).toContain('invalid_audience');
  });

  it.each(links)('$page → $target exists', ({ url }) => {
    const path = fileURLToPath(new URL(url.pathname, url));
    expect(existsSync(path), 'the file').toBe(true);
    if (url.hash !== '') expect(readAnchors(path)).toContain(decodeURIComponent(url.hash.slice(1)));
  });
});
