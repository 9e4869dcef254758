import { closeSync, constants, fstatSync, openSync, readFileSync, statSync, unwatchFile, watchFile } from 'node:fs';
import { withoutMark } from '../../core/jose/json.ts';

/** The path leads to a pipe, a folder or a device. */
export class IrregularFile extends Error {
  override readonly name = 'IrregularFile';
}

export class LargeFile extends Error {
  override readonly name = 'LargeFile';
}

/**
 * Reads a file without its byte order mark. Throws `LargeFile`, the error of the system, or `IrregularFile`, because a pipe without a writer would block
 * the process.
 */
export function readRegularFile(path: string, maxBytes: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new IrregularFile('It is not a regular file.');
    if (stats.size > maxBytes) throw new LargeFile(`It has more than ${maxBytes} bytes.`);
    return withoutMark(readFileSync(file));
  } finally {
    closeSync(file);
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
      if (next !== seen && performance.now() < deadline) {
        settle(next, deadline);
      } else {
        timer = undefined;
        onChange();
      }
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
