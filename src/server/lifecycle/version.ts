import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from '../../package-folder.ts';

/** The version in the package's own manifest. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'));
  const { version } = manifest as { readonly version: string }; // our own file
  return version;
}
