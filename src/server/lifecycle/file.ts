import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
  unwatchFile,
  watchFile,
} from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { withoutMark } from '../../core/jose/json.ts';

/** A file that is not used. The message is the cause, in one sentence. */
export class UnusableFile extends Error {}

/** The path leads to a pipe, a folder or a device. */
export class IrregularFile extends UnusableFile {}

export class LargeFile extends UnusableFile {}

const writableByOthers = 0o022;

/**
 * Reads a file without its byte order mark. Throws `LargeFile`, the error of the system, or `IrregularFile`, because a pipe without a writer would block
 * the process. `own` refuses a link, and a file that another user could have written.
 */
export function readRegularFile(path: string, maxBytes: number, writer: 'any' | 'own' = 'any'): Buffer {
  const noLink = writer === 'own' ? constants.O_NOFOLLOW : 0;
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | noLink);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new IrregularFile('It is not a regular file.');
    if (writer === 'own') assertOwn(stats);
    if (stats.size > maxBytes) throw new LargeFile(`It has more than ${maxBytes} bytes.`);
    return withoutMark(readFileSync(file));
  } finally {
    closeSync(file);
  }
}

function assertOwn({ uid, mode }: Stats): void {
  if (process.getuid !== undefined && uid !== process.getuid()) throw new UnusableFile('It belongs to another user.');
  if ((mode & writableByOthers) !== 0) throw new UnusableFile('Its group or others can write to it.');
}

/** Replaces a file atomically by a new one, which only its owner can read and no other process can have open. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomUUID()}.tmp`;
  let handle: FileHandle | undefined;
  try {
    handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    await handle.writeFile(text);
    await handle.sync();
    await handle.close();
    await rename(temporary, file);
  } catch (error) {
    await handle?.close().catch(() => undefined);
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Milliseconds between checks. The file is watched by name, so a renamed file is noticed too. */
const checkInterval = 1000;
/** Milliseconds that a changed file must stay unchanged: half of a YAML file is a complete YAML file. */
const quietTime = 500;
/** Milliseconds after which a file that keeps changing is read: 5 s after the first change, at the latest. */
const longestWait = 3500;

/** Calls `onChange` after each change, once the file is stable. Returns a function that stops watching. */
export function watchSettledFile(path: string, onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const settle = (seen: string, deadline: number): void => {
    timer = setTimeout(() => {
      const next = describeFile(path);
      if (next !== seen && performance.now() < deadline) return settle(next, deadline);
      timer = undefined;
      onChange();
    }, quietTime).unref();
  };
  const look = (): void => {
    if (timer === undefined) settle(describeFile(path), performance.now() + longestWait);
  };
  watchFile(path, { interval: checkInterval, persistent: false }, look);
  return () => {
    unwatchFile(path, look);
    clearTimeout(timer);
  };
}

/** Differs after each change, even if a tool preserves the time of modification. */
function describeFile(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join();
  } catch {
    return 'absent';
  }
}
