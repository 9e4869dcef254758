import type { IncomingMessage } from 'node:http';

/** Reads a body as text; `undefined` if it has more bytes. What follows them is not read. */
export const readNodeBody = async (incoming: IncomingMessage, maxBytes: number): Promise<string | undefined> =>
  (await readNodeBytes(incoming, maxBytes))?.toString('utf8');

export async function readNodeBytes(incoming: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length; // no encoding is set
    if (size > maxBytes) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
