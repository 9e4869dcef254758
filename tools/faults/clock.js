// A clock that can be set for one process: libfaketime, which Debian has as a package of that name.
import { readdirSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const folders = '/usr/lib';
const library = 'faketime/libfaketimeMT.so.1';

function findLibrary() {
  for (const folder of readdirSync(folders)) {
    try {
      if (readdirSync(join(folders, folder, 'faketime')).length > 0) return join(folders, folder, library);
    } catch {
      // not the folder of an architecture, or without the package
    }
  }
  return undefined;
}

/** A wall clock to be set: its `environment` for the process, and `step(seconds)`. Throws where libfaketime is missing. */
export function createClock(folder) {
  const path = findLibrary();
  if (path === undefined) throw new Error('libfaketime is not installed: apt-get install faketime');
  const file = join(folder, 'clock');
  const step = async (seconds) => {
    // In one step, lest half of it is read.
    await writeFile(`${file}.next`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    await rename(`${file}.next`, file);
  };
  return {
    environment: {
      LD_PRELOAD: path,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      // Timers and key freshness use the monotonic clock, which does not change.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
    step,
  };
}
