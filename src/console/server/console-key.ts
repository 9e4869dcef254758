import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';

/** The key that opens the console. A page uses it up; whoever can read its file may use it as it is. */
export interface ConsoleKey {
  matches(text: string): boolean;
  /** Takes the key if it is the right one: from then on another is in force. */
  take(text: string): boolean;
  /** Resolves when the file holds the key in force. */
  settled(): Promise<void>;
  /** Removes the file. */
  close(): Promise<void>;
}

/** Where the key is written, and what is told if that fails. */
export interface ConsoleKeyOptions {
  readonly file: string;
  readonly onProblem: (error: unknown) => void;
}

/** Makes a key and writes it to its file. Rejects if the file cannot be written. */
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

/** Of equal length, whatever was sent. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Put in place in one step, as a new file that nobody else could have opened before. */
async function writeSecret(file: string, secret: string): Promise<void> {
  const aside = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(aside, `${secret}\n`, { mode: 0o600, flag: 'wx' });
    await rename(aside, file);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}
