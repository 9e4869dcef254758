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

/** The folder in which the test files of a run share an object that is slow to create. */
export interface KeptPlace {
  /** The object of an earlier file; `undefined` without one. */
  read(): string | undefined;
  write(text: string): void;
}

/** The folder of this run. Runs for mutation testing have none; scripts run without Vitest. */
export function keptFolder(): string | undefined {
  return process.env['VITEST'] === undefined ? undefined : (inject('keptFolder') as string | undefined);
}

const taken = new Map<string, number>();

/** Another place of this kind at each call, in the same order for each file; after the last the first comes again. */
export function nextPlace(kind: string, count: number): KeptPlace {
  const folder = keptFolder();
  if (folder === undefined) return { read: () => undefined, write: () => undefined };
  const index = taken.get(kind) ?? 0;
  taken.set(kind, (index + 1) % count);
  const file = join(folder, `${kind}-${index}`);
  return {
    read: () => (existsSync(file) ? readFileSync(file, 'utf8') : undefined),
    write(text) {
      // Put in place in one step: another file may read it now.
      const aside = `${file}.${randomUUID()}`;
      writeFileSync(aside, text, { mode: 0o600 });
      renameSync(aside, file);
    },
  };
}
