import { readdirSync, readFileSync } from 'node:fs';

/** The pages of the documentation. */
export const pages: readonly string[] = [
  'README.md',
  'AGENTS.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((name) => name.endsWith('.md'))
    .toSorted(),
];

/** Written by `npm run docs` as a whole. */
export const referencePage = 'docs/reference.md';

/** A block of code. */
export interface CodeBlock {
  readonly page: string;
  /** Line of the page. */
  readonly line: number;
  /** The heading of level 2 above the block. Empty above the first one. */
  readonly section: string;
  readonly language: string;
  readonly text: string;
  /** Code that the reader is spared and the compiler needs: of a comment `<!-- given: … -->` above the block. */
  readonly given: string;
  /** The reason that it cannot compile here, from a comment `<!-- fragment: … -->` above the block. */
  readonly fragment: string | undefined;
  /** The file that it is a copy of: of a comment `<!-- file: … -->` above the block. */
  readonly file: string | undefined;
}

const block = /(?:<!-- (given|fragment|file): ((?:(?!-->)[^\n])*?) -->\n+)?^```(\w+)\n([\s\S]*?)^```$/gm;

/** Reads the blocks of code of a page. */
export function readCodeBlocks(page: string): readonly CodeBlock[] {
  const text = readFileSync(page, 'utf8');
  return [...text.matchAll(block)].map((match) => {
    const [, mark, remark = '', language = '', code = ''] = match;
    const above = text.slice(0, match.index);
    return {
      page,
      line: above.split('\n').length,
      section:
        above
          .match(/^## .*$/gm)
          ?.at(-1)
          ?.slice(3) ?? '',
      language,
      text: code,
      given: mark === 'given' ? remark : '',
      fragment: mark === 'fragment' ? remark : undefined,
      file: mark === 'file' ? remark : undefined,
    };
  });
}

const place = /<!-- file: (\S+) -->\n```(\w+)\n[\s\S]*?```\n<!-- end -->/g;

/** A page whose copies of files say what the files say. */
export function copyFiles(text: string): string {
  return text.replace(
    place,
    (_, path: string, language: string) =>
      `<!-- file: ${path} -->\n\`\`\`${language}\n${readFileSync(path, 'utf8')}\`\`\`\n<!-- end -->`,
  );
}

/** The files that a page has copies of. */
export function listCopies(text: string): readonly string[] {
  return [...text.matchAll(place)].map(([, path = '']) => path);
}
