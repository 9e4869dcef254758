import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** The path is that of a pipe, a folder or a device. */
export class IrregularFile extends Error {
  override readonly name = 'IrregularFile';
}

/** The file is larger than it may be. */
export class LargeFile extends Error {
  override readonly name = 'LargeFile';
}

/**
 * The bytes of a file. Throws `IrregularFile` for what is none: a pipe that nobody writes to would stop the whole process.
 * Throws `LargeFile`, or the error of the system.
 */
export function readRegularFile(path: string, maxBytes: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new IrregularFile('It is not a regular file.');
    if (stats.size > maxBytes) throw new LargeFile(`It has more than ${maxBytes} bytes.`);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}
