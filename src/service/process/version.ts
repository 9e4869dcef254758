import { readFileSync } from 'node:fs';

/** The version in the package's own manifest. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
  const { version } = manifest as { readonly version: string }; // our own file
  return version;
}
