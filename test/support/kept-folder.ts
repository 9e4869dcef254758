import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

/** Gives each run a folder for the keys and certificates that its test files share, and removes it at the end. */
export function setup({ provide }: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-kept-'));
  provide('keptFolder', folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
