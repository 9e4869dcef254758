// A clock that can be set for one process: libfaketime, which Debian has as a package of that name.
import { existsSync, readdirSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A wall clock to be set: its `environment` for the process, and `step(seconds)`. Throws where libfaketime is missing. */
export function createClock(folder) {
  // In the folder of an architecture.
  const paths = readdirSync('/usr/lib').map((name) => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`);
  const path = paths.find((each) => existsSync(each));
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
