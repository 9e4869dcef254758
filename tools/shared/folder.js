// The temporary folder of a run.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Creates a folder, which is removed when this process exits. */
export function makeFolder(name) {
  const folder = mkdtempSync(join(tmpdir(), `portcullis-${name}-`));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
