import { type ServerResponse, STATUS_CODES } from 'node:http';
import { type ErrorBodyFormat, statusPhrases } from '../../refusal/error-body.ts';
import type { Refusal } from '../../refusal/refusal.ts';

/** Header names in lower case, each followed by its value. Node sends an array faster than an object. */
export type HeaderList = readonly string[];

/** The header with the id of the log line. */
export const requestIdHeader = 'x-request-id';

/** Characters that are invalid in a header value (RFC 9110 §5.5), as in Node. */
const invalid = /[^\t\x20-\x7e\x80-\xff]/;

/** A response. A class, because its head is formatted once and sent often. */
export class Answer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string;
  /** True if each character of the body is one byte. */
  readonly isAscii: boolean;
  #head: string | undefined;

  constructor(status: number, headers: HeaderList, body: string, isAscii: boolean) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.isAscii = isAscii;
  }

  /** Status line and header lines. Throws `TypeError` if a value would break out of its line. */
  get head(): string {
    this.#head ??= writeHead(this.status, this.headers);
    return this.#head;
  }

  with(...more: HeaderList): Answer {
    return new Answer(this.status, [...this.headers, ...more], this.body, this.isAscii);
  }
}

export function createAnswer(status: number, headers: HeaderList, body: string): Answer {
  const length = Buffer.byteLength(body);
  return new Answer(status, [...headers, 'content-length', String(length)], body, length === body.length);
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
  const { status, headers, body } = answer;
  const all = requestId === undefined ? headers : [...headers, requestIdHeader, requestId];
  outgoing.writeHead(status, all as string[]); // Node only reads them
  outgoing.end(body);
}

function writeHead(status: number, headers: HeaderList): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const value = headers[i + 1] ?? '';
    if (invalid.test(value)) throw new TypeError(`The value of the header ${headers[i]} would break out of its line.`);
    head += `${headers[i]}: ${value}\r\n`;
  }
  return head;
}

const maxBatch = 32;

/** Responses that wait for the end of the event-loop iteration. */
export interface AnswerBatch<T> {
  add(answer: T): void;
  /** Sends all of them: their connections are about to be closed. */
  sendNow(): void;
}

/**
 * Collects the responses of one event-loop iteration. Sending a response wakes its reader. A reader on this host, such as a
 * proxy, sleeps again before the next request is authorized; of responses that are sent together, only the first wakes it.
 */
export function createAnswerBatch<T>(send: (answers: readonly T[]) => void): AnswerBatch<T> {
  let ready: T[] = [];
  const sendNow = (): void => {
    if (ready.length === 0) return;
    const answers = ready;
    ready = [];
    send(answers);
  };
  return {
    add(answer) {
      if (ready.length === 0) setImmediate(sendNow);
      ready.push(answer);
      if (ready.length === maxBatch) sendNow();
    },
    sendNow,
  };
}
