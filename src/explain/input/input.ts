import { showText } from '../../core/shown-text.ts';
import type { ForeignText } from './foreign-texts.ts';

/** Form of the input. */
export type InputKind = 'token' | 'authorization' | 'curl' | 'har' | 'request' | 'log-line';

export type HeaderLine = readonly [name: string, value: string];

/** A repair of what copying breaks. */
export interface Repaired {
  /** Name of the repair. */
  readonly id: string;
  /** The repair in words. */
  readonly note: string;
}

/** A request that was read from the input, as far as the input has it. Nothing is run or sent. */
export interface CallInput {
  readonly kind: Exclude<InputKind, 'log-line'>;
  readonly method?: string | undefined;
  /** Absolute URL. */
  readonly url?: string | undefined;
  readonly headers: readonly HeaderLine[];
  /** `undefined` if the input names a file. */
  readonly body?: string | undefined;
  /** True for a client that sends the path of the URL unchanged. */
  readonly isPathAsIs?: true;
  /** True for a document. HTTP clients do not send a line break in a header: they remove it, or refuse. */
  readonly isDocument?: true;
  readonly repairs?: readonly Repaired[];
  /** Set if no server can read the headers: what its HTTP parser responds, and the fix. */
  readonly malformed?: string;
  /** The response that the input also has. */
  readonly response?: ResponseInput;
}

export interface LogLineInput {
  readonly kind: 'log-line';
  readonly fields: Readonly<Record<string, unknown>>;
  /** Log lines of refusals in the input. The last is read. */
  readonly count?: number;
}

export interface ResponseInput {
  readonly kind: 'response';
  readonly status?: number | undefined;
  /** Error code of the challenge or the body; `null` for a challenge without one. */
  readonly error?: string | null | undefined;
  readonly description?: string | undefined;
  /** X-Request-Id. */
  readonly id?: string | undefined;
  /** Refusal of another product. */
  readonly foreign?: ForeignText;
}

export interface UnreadInput {
  readonly kind: 'unread';
  readonly problem: string;
}

export type Input =
  | CallInput
  | ResponseInput
  | LogLineInput
  | UnreadInput
  | { readonly kind: 'calls'; readonly calls: readonly CallInput[] };

/** Creates the result for unreadable input. The message must not repeat the input. */
export function unread(problem: string): UnreadInput {
  return { kind: 'unread', problem };
}

/**
 * Joins the lines of each header. A line break in a request that was sent is a 400 of the HTTP parser; in copied header lines
 * it is repaired.
 */
export function joinHeaderLines(call: CallInput): CallInput {
  const broken = call.headers.find(([name, value]) => /\s$/.test(name) || /[\r\n]/.test(value));
  if (broken === undefined) return call;
  const headers = call.headers.map(([name, value]): HeaderLine => {
    const joined = value.replace(/^(bearer|dpop)\s*[\r\n]\s*/i, '$1 ').replace(/\s*[\r\n]\s*/g, '');
    return [name.trim(), joined];
  });
  if (call.kind === 'authorization' || call.isDocument) {
    const repaired = { id: 'line_breaks', note: 'removed line breaks inside a header' };
    return { ...call, headers, repairs: [...(call.repairs ?? []), repaired] };
  }
  const [name, value] = broken;
  const at = value.search(/[\r\n]/);
  const place = value.trim().length <= at ? 'at the end of its value' : `after ${at} characters of its value`;
  const [fault, fix] =
    at < 0 ? ['white space before the colon', 'white space'] : [`a line break ${place}`, 'line break'];
  const malformed = `The HTTP parser of the server responds with 400, because ${showText(name.trim(), 60)} has ${fault}. Remove the ${fix}.`;
  return { ...call, headers, malformed };
}

/** The values of one header, joined by RFC 9110 §5.3; `null` if it is absent. */
export function joinHeader(headers: readonly HeaderLine[], name: string): string | null {
  const wanted = name.toLowerCase();
  const values = headers.filter(([each]) => each.toLowerCase() === wanted).map(([, value]) => value);
  return values.length === 0 ? null : values.join(', ');
}
