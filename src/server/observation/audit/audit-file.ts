import { attempt } from '../../../core/attempt.ts';

type FileSystem = typeof import('node:fs');

/** `stdout`, `stderr`, or the path of a file. */
export type AuditDestination = string;

const descriptors: ReadonlyMap<string, number> = new Map([
  ['stdout', 1],
  ['stderr', 2],
]);
const maxFileWrite = 64 * 1024;
/** PIPE_BUF of Linux. */
const maxPipeWrite = 4096;

/** Opens the destination for appending. A new file has the mode 0600. Throws the error of the system. */
export function openAuditFile(fs: FileSystem, destination: AuditDestination) {
  const { O_APPEND, O_CREAT, O_NONBLOCK, O_WRONLY } = fs.constants;
  const append = O_WRONLY | O_APPEND | O_NONBLOCK;
  const inherited = descriptors.get(destination);
  const first = inherited ?? fs.openSync(destination, append | O_CREAT, 0o600);
  const stats = fs.fstatSync(first);
  if (stats.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
  const isPipe = stats.isFIFO() || stats.isSocket();
  // A second descriptor, so that a write to a full pipe fails, and does not block the process; none without /proc.
  const isReopened = inherited !== undefined && stats.isFIFO();
  const second = isReopened ? attempt(() => fs.openSync(`/proc/self/fd/${first}`, append)) : undefined;
  const fd = second ?? first;
  return {
    /** Bytes of one write: a larger write to a pipe may interleave with writes of other processes. */
    maxWrite: isPipe ? maxPipeWrite : maxFileWrite,
    isPipe,
    /** Writes bytes. Returns how many were written. Throws the error of the system, also for a pipe that is full. */
    write: (bytes: Uint8Array): number => fs.writeSync(fd, bytes),
    /** Removes the end of the file if it has these bytes. Returns false if it has others, or is not a regular file. */
    removeEnd: (bytes: Uint8Array): boolean =>
      stats.isFile() && inherited === undefined && removeEnd(fs, { fd, path: destination }, bytes),
    close(): void {
      if (fd !== inherited) fs.closeSync(fd);
    },
  };
}

export type AuditFile = ReturnType<typeof openAuditFile>;

/** Another process may have appended its lines, so the end is compared. */
function removeEnd(fs: FileSystem, { fd, path }: { fd: number; path: string }, bytes: Uint8Array): boolean {
  let reader: number | undefined;
  try {
    reader = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    const { ino, dev, size } = fs.fstatSync(reader);
    const own = fs.fstatSync(fd);
    const start = size - bytes.length;
    if (ino !== own.ino || dev !== own.dev || start < 0) return false;
    const end = Buffer.alloc(bytes.length);
    if (fs.readSync(reader, end, 0, end.length, start) !== end.length || !end.equals(bytes)) return false;
    fs.ftruncateSync(fd, start);
    return true;
  } catch {
    return false;
  } finally {
    if (reader !== undefined) fs.closeSync(reader);
  }
}
