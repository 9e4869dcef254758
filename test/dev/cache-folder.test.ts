import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findCacheFolder } from '../../src/dev/provider/cache-folder.ts';

test.each([
  ['/var/cache/someone', '/var/cache/someone/portcullis'],
  [undefined, join(homedir(), '.cache', 'portcullis')],
  ['', join(homedir(), '.cache', 'portcullis')],
  ['relative', join(homedir(), '.cache', 'portcullis')],
])('XDG_CACHE_HOME %s → %s', (XDG_CACHE_HOME, folder) => expect(findCacheFolder({ XDG_CACHE_HOME })).toBe(folder));
