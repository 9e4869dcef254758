import type { IncomingMessage, ServerResponse } from 'node:http';

export interface ProviderResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Creates a JSON response that is not stored. */
export function jsonResponse(
  status: number,
  value: object,
  headers: Readonly<Record<string, string>> = {},
): ProviderResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(value),
  };
}

export function send(response: ServerResponse, { status, headers, body }: ProviderResponse): void {
  response.writeHead(status, headers);
  response.end(body);
}

/** Reads the body; `undefined` if it is longer than `limit` bytes. */
export async function readBody(request: IncomingMessage, limit: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    // Without an encoding, chunks are buffers.
    length += chunk.length;
    // Read and drop the rest, or the client could not read the response.
    if (length <= limit) chunks.push(chunk);
  }
  return length > limit ? undefined : Buffer.concat(chunks).toString('utf8');
}
