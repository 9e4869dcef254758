/** Characters of one shown value, at most. */
const maxLength = 160;
/** Length of the shortest part of a secret that must not be shown. */
const windowLength = 16;

/**
 * Control characters, and characters that change how a line reads without being seen: bidirectional controls, zero-width
 * characters, line separators, surrogates without a partner.
 */
const hidden =
  /[\p{Cc}\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\u{e0000}-\u{e007f}]/gu;

/** Text from outside, fit for a terminal and a log: escaped, and of bounded length. */
export function showText(text: string, length: number = maxLength): string {
  const cut = text.length > length ? `${text.slice(0, length)}… (${text.length} characters)` : text;
  return cut.replace(hidden, escapeCharacter);
}

/** Any JSON value as {@link showText} shows it: text as it is, everything else as JSON. */
export function showValue(value: unknown, length?: number): string {
  if (value === undefined) return 'absent';
  return showText(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'absent'), length);
}

/** Enough of an identifier to recognise it: its first and last characters. */
export function shorten(text: string): string {
  return showText(text.length <= 12 ? text : `${text.slice(0, 4)}…${text.slice(-2)}`);
}

/** The same text in ASCII only, for terminals that know nothing else. */
export function toAscii(text: string): string {
  return text.replaceAll('…', '...').replace(/[^\n\x20-\x7e]/gu, escapeCharacter);
}

/** Withholds what repeats a part of a secret. */
export type Withhold = (text: string) => string;

/**
 * Creates the last guard before output: a text that shares 16 characters in a row with a token, a proof or a cookie is
 * not shown. No check shows such a text on purpose; a claim may repeat one.
 */
export function createWithhold(secrets: readonly string[]): Withhold {
  const windows = new Set<string>();
  for (const secret of secrets) {
    for (let at = 0; at + windowLength <= secret.length; at++) windows.add(secret.slice(at, at + windowLength));
  }
  return (text) => {
    for (let at = 0; at + windowLength <= text.length; at++) {
      if (windows.has(text.slice(at, at + windowLength))) return '(withheld: it repeats a part of the credentials)';
    }
    return text;
  };
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
