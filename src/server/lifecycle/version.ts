import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../core/attempt.ts';
import { packageFolder } from '../../core/package-folder.ts';
import { version } from '../../core/version.ts';
import type { Build } from '../observation/process-metrics.ts';

/** Reads the commit that the build has written (`tools/scripts/bundle.js`). */
export function readBuild(): Build {
  const commit = attempt(() => readFileSync(join(packageFolder, 'dist/commit'), 'utf8'));
  return { version, commit: commit?.trim() ?? '' };
}
