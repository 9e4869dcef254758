import type { ForeignText } from './foreign-texts.ts';

/** Form of the input. */
export type InputKind = 'token' | 'authorization' | 'curl' | 'har' | 'request' | 'log-line';

export type HeaderLine = readonly [name: string, value: string];

/** A repair of what copying breaks. */
export interface Repaired {
  readonly id: string;
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
  readonly repairs?: readonly Repaired[];
  /** The response that the input also has. */
  readonly response?: ResponseInput;
}

export interface LogLineInput {
  readonly kind: 'log-line';
  readonly fields: Readonly<Record<string, unknown>>;
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

/** Reads text that `boundary` splits into requests, such as all requests that a browser copies. */
export function readEach(text: string, boundary: RegExp, read: (text: string) => Input): Input {
  const [first, ...rest] = text.split(boundary).map(read);
  const inputs = first === undefined ? [] : [first, ...rest];
  const calls = inputs.filter((each): each is CallInput => 'headers' in each);
  return first !== undefined && (inputs.length < 2 || calls.length < inputs.length) ? first : { kind: 'calls', calls };
}

/** The values of one header, joined by RFC 9110 §5.3; `null` if it is absent. */
export function joinHeader(headers: readonly HeaderLine[], name: string): string | null {
  const wanted = name.toLowerCase();
  const values = headers.filter(([each]) => each.toLowerCase() === wanted).map(([, value]) => value);
  return values.length === 0 ? null : values.join(', ');
}
