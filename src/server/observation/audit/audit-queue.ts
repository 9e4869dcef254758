import type { AuditFile } from './audit-file.ts';

/** Behaviour while lines cannot be written: refuse requests that need a token, or drop the lines. */
export type AuditFull = 'block' | 'drop';

/** Characters that may wait. More lines are dropped and counted. */
const maxWaiting = 16 * 1024 * 1024;
const newline = 10;

/** Creates the queue of lines that wait for the file. A line is written completely before the next one. */
export function createAuditQueue(full: AuditFull) {
  const lines: string[] = [];
  let characters = 0;
  /** Bytes of the first line that are in the file, after a partial write whose end could not be removed. */
  let written = 0;
  let dropped = 0;

  const remove = (count: number): void => {
    for (const line of lines.splice(0, count)) characters -= line.length;
  };
  const drop = (kept: number): number => {
    const lost = lines.splice(kept);
    for (const line of lost) characters -= line.length;
    dropped += lost.length;
    return lost.length;
  };

  /** The lines of the next write; of the first only the part that is missing. */
  const next = ({ maxWrite: most, isPipe }: AuditFile): { readonly bytes: Buffer; readonly count: number } => {
    let text = '';
    let size = -written;
    let count = 0;
    for (const line of lines) {
      // Only a pipe needs the exact size.
      size += isPipe ? Buffer.byteLength(line) : line.length;
      if (count > 0 && size > most) break;
      text += line;
      count++;
    }
    return { bytes: Buffer.from(text).subarray(written), count };
  };

  const settlePartial = (file: AuditFile, bytes: Buffer): void => {
    const end = bytes.lastIndexOf(newline) + 1;
    const complete = bytes.reduce((sum, byte) => sum + (byte === newline ? 1 : 0), 0);
    if (complete > 0) written = 0;
    remove(complete);
    const part = bytes.subarray(end);
    // The part of an earlier write precedes this part.
    if (part.length > 0 && (written > 0 || !file.removeEnd(part))) written += part.length;
  };

  return {
    length: (): number => lines.length,
    dropped: (): number => dropped,
    add(line: string): void {
      if (characters + line.length > maxWaiting) return void dropped++;
      lines.push(line);
      characters += line.length;
    },
    /** Returns the error, if there is one. */
    write(file: AuditFile): unknown {
      try {
        while (lines.length > 0) {
          const { bytes, count } = next(file);
          const length = file.write(bytes);
          if (length === bytes.length) {
            written = 0;
            remove(count);
          } else {
            settlePartial(file, bytes.subarray(0, length));
            // The rest of a line may follow. Without one, the next write would be partial too.
            if (length === 0 || written === 0) throw Object.assign(new Error('partial write'), { code: 'ENOSPC' });
          }
        }
        return undefined;
      } catch (error) {
        if (full === 'drop') drop(written > 0 ? 1 : 0);
        return error ?? new Error('unknown');
      }
    },
    /** The next file gets the line of a partial write from its start. */
    restart(file: AuditFile): void {
      const [line = ''] = lines;
      if (written > 0) file.removeEnd(Buffer.from(line).subarray(0, written));
      written = 0;
    },
    clear: (): number => drop(0),
  };
}
