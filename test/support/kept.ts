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

/** Where the test files of a run share one piece that is slow to make. */
export interface KeptPlace {
  /** What a file before has written; `undefined` if none has. */
  read(): string | undefined;
  write(text: string): void;
}

const taken = new Map<string, number>();

/** Another place of this kind at each call, in the same order for each file; after the last the first comes again. */
export function nextPlace(kind: string, count: number): KeptPlace {
  const folder = inject('keptFolder') as string | undefined; // runs for mutation testing have none
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
