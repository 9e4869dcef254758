import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IrregularFile, LargeFile, readRegularFile } from '../../../src/server/lifecycle/file.ts';
import { needs } from '../../support/programs.ts';

let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-files-'));
  writeFileSync(at('file'), 'what it holds');
  symlinkSync(at('file'), at('link'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a file that is read while the service runs', () => {
  it.each(['file', 'link'])('%s → its bytes', (name) =>
    expect(readRegularFile(at(name), 13).toString()).toBe('what it holds'),
  );

  it.each([
    ['a folder', () => folder],
    ['a device', () => '/dev/zero'],
  ])('%s → an error, at once', (_claim, path) => expect(() => readRegularFile(path(), 13)).toThrow(IrregularFile));

  it('a pipe without a writer → an error, immediately', needs('mkfifo'), () => {
    execFileSync('mkfifo', [at('pipe')]);
    expect(() => readRegularFile(at('pipe'), 13)).toThrow(IrregularFile);
  });

  it('too large → an error; absent → the system’s error', () => {
    expect(() => readRegularFile(at('file'), 12)).toThrow(LargeFile);
    expect(() => readRegularFile(at('none'), 12)).toThrow('ENOENT');
  });
});
