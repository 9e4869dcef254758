import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { type ErrorBodyFormat, statusPhrases } from '../http/error-body.ts';

/** What a request is answered with. */
export interface Answer {
  readonly status: number;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

/** An answer that is the same for everybody. */
export function prepareAnswer(status: number, contentType: string, body: string): Answer {
  return { status, headers: { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }, body };
}

/** An error of HTTP alone, in the configured form. */
export function plainError(errorBody: ErrorBodyFormat, status: number): Answer {
  const { contentType, body } = errorBody({ status, description: statusPhrases.get(status) ?? 'Error' });
  return prepareAnswer(status, contentType, body);
}

/** Adds headers to an answer. */
export function withHeaders(answer: Answer, headers: Answer['headers']): Answer {
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** Sends an answer; Node leaves out the body where the method is HEAD. */
export function sendAnswer({ status, headers, body }: Answer, outgoing: ServerResponse): void {
  outgoing.writeHead(status, headers as OutgoingHttpHeaders); // Node only reads them
  outgoing.end(body);
}
