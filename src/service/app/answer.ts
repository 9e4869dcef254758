import type { ServerResponse } from 'node:http';
import { type ErrorBodyFormat, statusPhrases } from '../../refusal/error-body.ts';

/** Header lines: names in lower case, each followed by its value. Node sends a list faster than an object. */
export type HeaderList = readonly string[];

/** What a request is answered with. */
export interface Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string;
}

/** An answer with its length. */
export function createAnswer(status: number, headers: HeaderList, body: string): Answer {
  return { status, headers: [...headers, 'content-length', String(Buffer.byteLength(body))], body };
}

/** An error of HTTP only, in the configured form. */
export function plainError(errorBody: ErrorBodyFormat, status: number): Answer {
  const { contentType, body } = errorBody({ status, description: statusPhrases.get(status) ?? 'Error' });
  return createAnswer(status, ['content-type', contentType], body);
}

/** Adds headers to an answer. */
export function withHeaders({ status, headers, body }: Answer, ...more: HeaderList): Answer {
  return { status, headers: [...headers, ...more], body };
}

/** Sends an answer; Node leaves out the body where the method is HEAD. */
export function sendAnswer({ status, headers, body }: Answer, outgoing: ServerResponse): void {
  outgoing.writeHead(status, headers as string[]); // Node only reads them
  outgoing.end(body);
}
