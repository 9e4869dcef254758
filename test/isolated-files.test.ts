import { readdirSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isolatedFiles } from './support/isolated-files.ts';

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => join('test', file));

describe('test files that have a process of their own', () => {
  it.each(isolatedFiles)('%s → is there', (pattern) =>
    expect(files.filter((file) => matchesGlob(file, pattern))).not.toEqual([]),
  );

  it('a module is replaced, or loaded anew → the file is one of them', () => {
    const replacing = files.filter((file) => /\bvi\.(?:mock|doMock|resetModules)\(/.test(readFileSync(file, 'utf8')));
    expect(replacing.length).toBeGreaterThan(3);
    expect(
      replacing.filter((file) => !isolatedFiles.some((pattern) => matchesGlob(file, pattern))),
      'Name them in test/support/isolated-files.ts: the files after them would get what they put in',
    ).toEqual([]);
  });
});
