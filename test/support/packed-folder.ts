import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

/** Gives each run a folder in which its tests install the packed package, if any of them does, and removes it at the end. */
export function setup({ provide }: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-packed-'));
  provide('packedFolder', folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
