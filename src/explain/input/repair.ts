import type { Repaired } from './input.ts';

export const jwtForm = /^ey[\w-]+\.[\w-]+\.[\w-]*$/;
/** Spaces other than the ASCII space, and invisible characters. */
const hidden = /[\u00a0\u00ad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]/g;

export function isHidden(text: string): boolean {
  return text.search(hidden) >= 0;
}

/** Removes invisible characters; a space remains after a scheme. */
export function removeHidden(text: string): string {
  return text
    .replace(hidden, ' ')
    .replace(/^\s*(bearer|dpop)\s+/i, '$1 ')
    .trim();
}

/** Decodes `%20` and the like, and a plus after the scheme; `undefined` if an escape is not valid. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replace(/^(bearer|dpop)\+/i, '$1 '));
  } catch {
    return undefined;
  }
}

export const decodedPercent = { id: 'percent_encoding', note: 'decoded percent-encoding' } as const;

/** Removes line breaks, their quotation (`> `), the mark of quoted-printable before them, and white space around them. */
function joinLines(text: string): string {
  return text.replace(/(?:=(?=\r?\n)|[ \t]{1,200})?[\r\n]\s*(?:> ?)*/g, '');
}

/** Something that copying does to a token. */
interface Repair extends Repaired {
  /** Returns the repaired text; `undefined` if it does not match. */
  readonly apply: (text: string) => string | undefined;
}

const repairs: readonly Repair[] = [
  {
    id: 'hidden_characters',
    note: 'removed invisible characters, such as a no-break space',
    apply: (text) => (isHidden(text) ? text.replace(hidden, '').trim() : undefined),
  },
  { id: 'line_breaks', note: 'removed line breaks inside the token', apply: joinLines },
  { id: 'spaces', note: 'removed spaces inside the token', apply: (text) => text.replace(/[ \t]+/g, '') },
  {
    id: 'quotation_marks',
    note: 'removed quotation marks, brackets or markup around the token',
    apply: (text) =>
      /^(?:<\w{1,20}>|["'`“‘<([{]){1,20}((?:[^"'`“‘<([{]).*?)(?:<\/\w{1,20}>|["'`”’>)\]}]){1,20}$/.exec(text)?.[1],
  },
  {
    ...decodedPercent,
    apply: (text) => (/%[\da-f]{2}/i.test(text) ? decodePercent(text) : undefined),
  },
];

export interface RepairedToken {
  readonly token: string;
  readonly repairs?: readonly Repaired[];
}

/** Repairs what copying breaks, or `only` some of it; `undefined` if the result is not a JWT, or nothing was broken. */
export function repairToken(text: string, only?: readonly string[]): RepairedToken | undefined {
  if (jwtForm.test(text)) return undefined;
  const made: Repair[] = [];
  let token = text;
  for (const repair of repairs) {
    if (only?.includes(repair.id) === false) continue;
    const repaired = repair.apply(token);
    if (repaired === undefined || repaired === token) continue;
    made.push(repair);
    token = repaired;
  }
  return jwtForm.test(token) && made.length > 0
    ? { token, repairs: made.map(({ id, note }) => ({ id, note })) }
    : undefined;
}
