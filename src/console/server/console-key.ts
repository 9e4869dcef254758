import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';

/** One-time key of the console. A page uses it up; `explain` reads its file and does not. */
export interface ConsoleKey {
  matches(text: string): boolean;
  /** Uses up the key if it matches, and creates the next one. */
  take(text: string): boolean;
  /** Resolves when the file holds the current key. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

export interface ConsoleKeyOptions {
  readonly file: string;
  /** Called if a new key cannot be written. */
  readonly onProblem: (error: unknown) => void;
}

/** Creates a key and its file. Rejects if the file cannot be written. */
export async function openConsoleKey({ file, onProblem }: ConsoleKeyOptions): Promise<ConsoleKey> {
  let key = makeKey();
  await writeSecret(file, key);
  let writing = Promise.resolve();
  const matches = (text: string): boolean => timingSafeEqual(digest(text), digest(key));
  return {
    matches,
    take(text) {
      if (!matches(text)) return false;
      key = makeKey();
      const next = key;
      writing = writing.then(() => writeSecret(file, next)).catch(onProblem);
      return true;
    },
    settled: () => writing,
    async close() {
      await writing;
      await rm(file, { force: true });
    },
  };
}

function makeKey(): string {
  return randomBytes(32).toString('base64url');
}

/** Equal length for timingSafeEqual. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Replaces the file atomically by a new one, which no other process can have open. */
async function writeSecret(file: string, secret: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(temporary, `${secret}\n`, { mode: 0o600, flag: 'wx' });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
