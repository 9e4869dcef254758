import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Holds the keys and certificates that the test files of this run share. */
    keptFolder: string;
  }
}

/** The folder of this run. Runs for mutation testing have none; scripts run without Vitest. */
export function keptFolder(): string | undefined {
  return process.env['VITEST'] === undefined ? undefined : (inject('keptFolder') as string | undefined);
}

const taken = new Map<string, number>();

/**
 * Another place at each call, for an object of this kind that is slow to create and that the test files of a run share; in the
 * same order for each file, and after the last the first comes again. `read` returns `undefined` without an earlier file.
 */
export function nextPlace(kind: string, count: number) {
  const folder = keptFolder();
  if (folder === undefined) return { read: () => undefined, write: (_text: string) => undefined };
  const index = taken.get(kind) ?? 0;
  taken.set(kind, (index + 1) % count);
  const file = join(folder, `${kind}-${index}`);
  return {
    read: () => (existsSync(file) ? readFileSync(file, 'utf8') : undefined),
    write(text: string) {
      // Put in place in one step: another file may read it now.
      const aside = `${file}.${randomUUID()}`;
      writeFileSync(aside, text, { mode: 0o600 });
      renameSync(aside, file);
    },
  };
}
