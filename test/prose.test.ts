import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { countByFolder, findInFile, listFiles, readBaseline } from '../tools/prose/reader.js';
import { useFolder } from './support/folder.ts';

const folder = useFolder();

/** The expressions found in a file with this name and content. */
function findIn(name: string, content: string): readonly string[] {
  const file = join(folder, name);
  writeFileSync(file, content);
  return findInFile(file).map(({ found, line }) => `${line}: ${found}`);
}

describe('banned expressions', () => {
  const baseline = readBaseline();
  const files = listFiles();
  const counts = countByFolder(files.flatMap(findInFile));

  it('sources, documents and tests are read', () => {
    for (const name of ['src/index.ts', 'README.md', 'docs/gate.md', 'test/prose.test.ts', 'tools/prose/main.js'])
      expect(files).toContain(name);
  });

  it('no folder has more than its baseline (`node tools/prose/main.js --changed main` lists new ones)', () => {
    const allowed = (name: string) => baseline[name] ?? 0;
    const above = Object.entries(counts).filter(([name, count]) => count > allowed(name));
    expect(above.map(([name, count]) => `${name}: ${count}, at most ${allowed(name)}`)).toEqual([]);
  });
});

it.each([
  ['doc comment', 'a.ts', '/** What a reader gets. */\nexport const a = 1;', ['1: What']],
  ['line comments, joined', 'b.ts', '// This is\n// no sentence.\nexport const a = 1;', ['1: is no']],
  ['comment without a banned start', 'c.ts', '// What a reader gets\nexport const a = 1;', []],
  ['string of three words', 'd.ts', "export const a = 'the service answers';", ['1: answers']],
  ['string of two words', 'e.ts', "export const a = 'service answers';", []],
  ['template', 'f.ts', 'export const a = `the service\nanswered it`;', ['2: answered']],
  ['inline code', 'g.ts', '// Sets `a text` to 1\nexport const a = 1;', []],
  ['paragraph', 'h.md', '# Title\n\nThe client is\nnot told.\n', ['4: told']],
  ['code fence and generated block', 'i.md', '```text\nasked\n```\n<!-- table: a -->\nasked\n<!-- end -->\n', []],
])('passages of a file: %s', (_, name, content, expected) => expect(findIn(name, content)).toEqual(expected));
