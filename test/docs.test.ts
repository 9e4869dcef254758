import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readmeTables } from './support/readme-tables.ts';

const pages = ['README.md', ...readdirSync('docs').map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith('.md'),
);
const place = /<!-- table: (\w+) -->\n([\s\S]*?)<!-- end -->/g;
const places = pages.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(place)].map(([, name = '', text = '']) => ({ page, name, text })),
);

// `npm run docs` writes the tables anew.
if (process.env['UPDATE_DOCS'] !== undefined) {
  for (const page of pages) {
    const text = readFileSync(page, 'utf8').replace(
      place,
      (_, name: string) => `<!-- table: ${name} -->\n${readmeTables[name] ?? ''}\n<!-- end -->`,
    );
    writeFileSync(page, text);
  }
}

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
