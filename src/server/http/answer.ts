import type { ServerResponse } from 'node:http';
import { type ErrorBodyFormat, statusPhrases } from '../../core/refusal/error-body.ts';
import type { Refusal } from '../../core/refusal/refusal.ts';

/** Header names in lower case, each followed by its value. Node sends an array faster than an object. */
export type HeaderList = readonly string[];

/** The header with the id of the log line. */
export const requestIdHeader = 'x-request-id';

/** A response. */
export class Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string;
  /** `latin1` for ASCII: it is copied, not encoded. */
  readonly encoding: 'latin1' | 'utf8';

  constructor(status: number, headers: HeaderList, body: string) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.encoding = Buffer.byteLength(body) === body.length ? 'latin1' : 'utf8';
  }

  with(...more: HeaderList): Answer {
    return new Answer(this.status, [...this.headers, ...more], this.body);
  }
}

export function createAnswer(status: number, headers: HeaderList, body: string): Answer {
  return new Answer(status, [...headers, 'content-length', String(Buffer.byteLength(body))], body);
}

export function answerRefusal({ status, headers, body }: Refusal, ...more: HeaderList): Answer {
  return createAnswer(status, [...Object.entries(headers).flat(), ...more], body);
}

/** Creates an error of HTTP, in the configured form. */
export function plainError(errorBody: ErrorBodyFormat, status: number): Answer {
  const { contentType, body } = errorBody({ status, description: statusPhrases.get(status) ?? 'Error' });
  return createAnswer(status, ['content-type', contentType], body);
}

/** Sends a response; Node omits the body of a response to HEAD. `requestId`: id of the log line, for a refused request. */
export function sendAnswer(answer: Answer, outgoing: ServerResponse, requestId?: string): void {
  const { status, headers, body, encoding } = answer;
  const all = requestId === undefined ? headers : [...headers, requestIdHeader, requestId];
  outgoing.writeHead(status, all as string[]); // Node only reads them
  outgoing.end(body, encoding);
}
