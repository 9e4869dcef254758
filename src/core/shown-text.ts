const maxLength = 160;
/** Length of the shortest part of a secret that must not be shown. */
const windowLength = 16;

/** Control characters and invisible ones: bidirectional controls, zero width, line separators, lone surrogates. */
const hidden =
  /[\p{Cc}\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\u{e0000}-\u{e007f}]/gu;

/** Escapes and bounds an untrusted string for a terminal and a log. */
export function showText(text: string, length: number = maxLength): string {
  const cut = text.length > length ? `${text.slice(0, length)}… (${text.length} characters)` : text;
  return cut.replace(hidden, escapeCharacter);
}

/** Any JSON value as {@link showText} shows it; other values than strings as JSON. */
export function showValue(value: unknown, length?: number): string {
  if (value === undefined) return 'absent';
  return showText(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'absent'), length);
}

/** Returns the message of an error; `unknown` for another value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}

/** Returns the code of a system error, such as `ENOENT`; otherwise `unknown`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

/** Shows the code in a message, if there is one. */
export function showCode(error: unknown): string {
  const code = codeOf(error);
  return code === 'unknown' ? '' : ` (${code})`;
}

/** The first and last characters of an identifier. */
export function shorten(text: string): string {
  return showText(text.length <= 12 ? text : `${text.slice(0, 4)}…${text.slice(-2)}`);
}

/** Escapes all but ASCII, for a dumb terminal. */
export function toAscii(text: string): string {
  return text.replaceAll('…', '...').replace(/[^\n\x20-\x7e]/gu, escapeCharacter);
}

export type Withhold = (text: string) => string;

/** Creates the last guard before output: hides a string that shares 16 consecutive characters with a secret. */
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
