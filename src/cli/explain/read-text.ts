import { createReadStream } from 'node:fs';
import { UsageError } from './opening.ts';

const maxInput = 64 * 1024 * 1024;

/** The text of a file, or of standard input. Throws `UsageError` if there is none. */
export async function readText(file: string | undefined): Promise<string> {
  if (file === undefined && process.stdin.isTTY)
    throw new UsageError('nothing comes in: pipe the text in, or name --file');
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    // What writes into the pipe may take its time.
    const stream: AsyncIterable<Uint8Array> = file === undefined ? process.stdin : createReadStream(file);
    for await (const chunk of stream) {
      length += chunk.length;
      if (length > maxInput) throw new UsageError('the text has more than 64 MiB');
      chunks.push(chunk);
    }
    return decode(Buffer.concat(chunks));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(file === undefined ? 'the text cannot be read' : 'the file of --file cannot be read');
  }
}

/** PowerShell writes files in UTF-16. */
function decode(bytes: Buffer): string {
  const isWide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] !== 0 && bytes[1] === 0 && bytes[3] === 0);
  return bytes.toString(isWide ? 'utf16le' : 'utf8');
}
