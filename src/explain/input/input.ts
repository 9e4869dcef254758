/** What kind of text was given. */
export type InputKind = 'token' | 'authorization' | 'curl' | 'har' | 'request' | 'log-line';

/** One line of a header, name and value as they were written. */
export type HeaderLine = readonly [name: string, value: string];

/** A call that was read from a text. It was only read: nothing in it is run or called. */
export interface CallInput {
  readonly kind: Exclude<InputKind, 'log-line'>;
  /** `undefined` if the text does not tell. */
  readonly method: string | undefined;
  /** Absolute URL; `undefined` if the text does not tell. */
  readonly url: string | undefined;
  readonly headers: readonly HeaderLine[];
  /** What the service answered, if the text tells. */
  readonly answer?: { readonly status: number; readonly headers: readonly HeaderLine[] };
}

/** A log line of a refused request. */
export interface LogLineInput {
  readonly kind: 'log-line';
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A text that is none of these; says why. */
export interface UnreadInput {
  readonly kind: 'unread';
  readonly problem: string;
}

export type Input = CallInput | LogLineInput | UnreadInput;

/** A text that cannot be used, in the words for the person who gave it. Nothing of the text is repeated. */
export function unread(problem: string): UnreadInput {
  return { kind: 'unread', problem };
}

/** The values of one header, joined as RFC 9110 §5.3 has it; `null` if there is none. */
export function joinHeader(headers: readonly HeaderLine[], name: string): string | null {
  const wanted = name.toLowerCase();
  const values = headers.filter(([each]) => each.toLowerCase() === wanted).map(([, value]) => value);
  return values.length === 0 ? null : values.join(', ');
}
