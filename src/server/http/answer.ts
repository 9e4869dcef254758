import { type ServerResponse, STATUS_CODES } from 'node:http';
import { type ErrorBodyFormat, statusPhrases } from '../../refusal/error-body.ts';
import type { Refusal } from '../../refusal/refusal.ts';

/** Header lines: names in lower case, each followed by its value. Node sends a list faster than an object. */
export type HeaderList = readonly string[];

/** The header that names the request’s line in the log, for whoever asks about it. */
export const requestIdHeader = 'x-request-id';

/** What does not belong into a header value (RFC 9110 §5.5). Node refuses to send the same. */
const unfit = /[^\t\x20-\x7e\x80-\xff]/;

/** What a request is answered with. A class because its head is written once, however often it is sent. */
export class Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string;
  /** Whether each character of the body is one byte. */
  readonly isAscii: boolean;
  #head: string | undefined;

  constructor(status: number, headers: HeaderList, body: string, isAscii: boolean) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.isAscii = isAscii;
  }

  /** Its status line and header lines, each with its end. Throws `TypeError` where a value would break out of its line. */
  get head(): string {
    this.#head ??= writeHead(this.status, this.headers);
    return this.#head;
  }

  /** The same answer with more headers. */
  with(...more: HeaderList): Answer {
    return new Answer(this.status, [...this.headers, ...more], this.body, this.isAscii);
  }
}

/** An answer with its length. */
export function createAnswer(status: number, headers: HeaderList, body: string): Answer {
  const length = Buffer.byteLength(body);
  return new Answer(status, [...headers, 'content-length', String(length)], body, length === body.length);
}

/** What a refused request is answered with. */
export function answerRefusal({ status, headers, body }: Refusal, ...more: HeaderList): Answer {
  return createAnswer(status, [...Object.entries(headers).flat(), ...more], body);
}

/** An error of HTTP only, in the configured form. */
export function plainError(errorBody: ErrorBodyFormat, status: number): Answer {
  const { contentType, body } = errorBody({ status, description: statusPhrases.get(status) ?? 'Error' });
  return createAnswer(status, ['content-type', contentType], body);
}

/**
 * Sends an answer; Node leaves out the body where the method is HEAD. `requestId`: the id of the request's log line, for
 * whoever asks why it was refused.
 */
export function sendAnswer(answer: Answer, outgoing: ServerResponse, requestId?: string): void {
  const { status, headers, body } = answer;
  const all = requestId === undefined ? headers : [...headers, requestIdHeader, requestId];
  outgoing.writeHead(status, all as string[]); // Node only reads them
  outgoing.end(body);
}

function writeHead(status: number, headers: HeaderList): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const value = headers[i + 1] ?? '';
    if (unfit.test(value)) throw new TypeError(`The value of the header ${headers[i]} would break out of its line.`);
    head += `${headers[i]}: ${value}\r\n`;
  }
  return head;
}
