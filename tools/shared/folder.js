// The temporary folders of a run.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set();

/** Creates a folder, which is removed when this process exits. */
export function makeFolder(name) {
  if (folders.size === 0) process.once('exit', removeAll);
  const folder = mkdtempSync(join(tmpdir(), `portcullis-${name}-`));
  folders.add(folder);
  return folder;
}

function removeAll() {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
