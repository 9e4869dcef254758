import { createReadStream } from 'node:fs';
import { UsageError } from '../commands/failure.ts';

const maxInput = 64 * 1024 * 1024;

/** Reads a file, or else standard input. */
export async function readText(file: string | undefined): Promise<string> {
  if (file === undefined && process.stdin.isTTY) throw new UsageError('there is no input: pipe it in, or add --file.');
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    // The writer of the pipe may be slow.
    const stream: AsyncIterable<Uint8Array> = file === undefined ? process.stdin : createReadStream(file);
    for await (const chunk of stream) {
      length += chunk.length;
      if (length > maxInput) throw new UsageError('the input has more than 64 MiB.');
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(file === undefined ? 'the input cannot be read.' : 'the file of --file cannot be read.');
  }
  return decode(Buffer.concat(chunks));
}

/** PowerShell writes files in UTF-16. */
function decode(bytes: Buffer): string {
  const isWide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] !== 0 && bytes[1] === 0 && bytes[3] === 0);
  return bytes.toString(isWide ? 'utf16le' : 'utf8');
}
