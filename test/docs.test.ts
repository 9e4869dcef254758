import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { copyFiles, listCopies, pages, referencePage } from './support/pages.ts';
import { readmeTables } from './support/readme-tables.ts';
import { writeReference } from './support/reference.ts';

const place = /<!-- table: (\w+) -->\n([\s\S]*?)<!-- end -->/g;
const places = pages.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(place)].map(([, name = '', text = '']) => ({ page, name, text })),
);

// `npm run docs` writes tables, copies of files and the reference anew.
if (process.env['UPDATE_DOCS'] !== undefined) {
  writeFileSync(referencePage, writeReference());
  for (const page of pages) {
    const text = readFileSync(page, 'utf8').replace(
      place,
      (_, name: string) => `<!-- table: ${name} -->\n${readmeTables[name] ?? ''}\n<!-- end -->`,
    );
    writeFileSync(page, copyFiles(text));
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
