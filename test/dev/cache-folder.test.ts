import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findCacheFolder, makeCacheFolder } from '../../src/dev/provider/cache-folder.ts';
import { LocalIdpFailure } from '../../src/dev/provider/failure.ts';
import { useFolder } from '../support/folder.ts';

const base = useFolder();

test.each([
  ['/var/cache/someone', '/var/cache/someone/portcullis'],
  [undefined, join(homedir(), '.cache', 'portcullis')],
  ['', join(homedir(), '.cache', 'portcullis')],
  ['relative', join(homedir(), '.cache', 'portcullis')],
])('XDG_CACHE_HOME %s → %s', (XDG_CACHE_HOME, folder) => expect(findCacheFolder({ XDG_CACHE_HOME })).toBe(folder));

test('folder → made with its parents, and closed to others even where it was open', async () => {
  const folder = join(base, 'a', 'b');
  await makeCacheFolder(folder);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  await makeCacheFolder(folder);
});

test('folder that cannot be made → LocalIdpFailure', () =>
  expect(makeCacheFolder('/dev/null/portcullis')).rejects.toThrow(LocalIdpFailure));
