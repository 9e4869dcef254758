import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { IrregularFile, LargeFile, readRegularFile } from '../../../src/server/lifecycle/file.ts';
import { useFolder } from '../../support/folder.ts';
import { needs } from '../../support/programs.ts';

const folder = useFolder();
const at = (name: string): string => join(folder, name);

beforeAll(() => {
  writeFileSync(at('file'), 'what it holds');
  symlinkSync(at('file'), at('link'));
});

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
