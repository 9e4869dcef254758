import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** Makes a temporary folder for the tests of a file, and removes it after them. */
export function useFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-test-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
