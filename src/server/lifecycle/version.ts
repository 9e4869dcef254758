import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../core/attempt.ts';
import { packageFolder } from '../../core/package-folder.ts';
import type { Build } from '../observation/process-metrics.ts';

export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'));
  const { version } = manifest as { readonly version: string }; // our own file
  return version;
}

/** Reads the commit that the build has written (`tools/scripts/bundle.js`). */
export function readBuild(): Build {
  const commit = attempt(() => readFileSync(join(packageFolder, 'dist/commit'), 'utf8'));
  return { version: readVersion(), commit: commit?.trim() ?? '' };
}
