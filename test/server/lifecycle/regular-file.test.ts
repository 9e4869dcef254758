import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { IrregularFile, LargeFile, readRegularFile } from '../../../src/server/lifecycle/file.ts';
import { watchReloads } from '../../../src/server/lifecycle/reload.ts';
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

const before = process.listeners('SIGHUP');
afterEach(() => {
  for (const listener of process.listeners('SIGHUP')) {
    if (!before.includes(listener)) process.off('SIGHUP', listener);
  }
});

it('a request before something is added → it is called when it is added, and at the next request', () => {
  const reloads = watchReloads({ write: () => {} } as never); // only errors are written
  const calls: string[] = [];
  reloads.add(() => void calls.push('first'));
  process.emit('SIGHUP');
  reloads.add(() => void calls.push('second'));
  expect(calls).toEqual(['first', 'second']);
  process.emit('SIGHUP');
  expect(calls).toEqual(['first', 'second', 'first', 'second']);
});
