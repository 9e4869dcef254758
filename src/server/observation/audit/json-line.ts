/** Control and bidirectional characters, line separators, surrogates without a partner. JSON escapes those below U+0020. */
const hidden =
  /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Writes a JSON string of at most `length` characters of the text. */
export function quote(text: string, length: number): string {
  if (text.length <= length && isPlain(text)) return `"${text}"`;
  const cut = text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
  return JSON.stringify(cut).replace(hidden, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Reports whether a string needs no escape. A loop is faster than a pattern for short strings. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}

/** Writes a member of a line with its leading comma; nothing for `undefined`. `length`: characters of the value. */
export function writeMember(
  name: string,
  value: string | undefined,
  length: number = Number.POSITIVE_INFINITY,
): string {
  return value === undefined ? '' : `,"${name}":${quote(value, length)}`;
}

/** Writes a member whose value is known to need no escape. */
export function writePlain(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":"${value}"`;
}

let second = Number.NaN;
let secondText = '';

/** Formats milliseconds since the epoch as ISO 8601 in UTC. Formatting a second is slow, and many lines share one. */
export function formatTime(time: number): string {
  const milliseconds = time % 1000;
  if (time - milliseconds !== second) {
    second = time - milliseconds;
    secondText = new Date(second).toISOString().slice(0, 20);
  }
  return `${secondText}${milliseconds < 100 ? (milliseconds < 10 ? '00' : '0') : ''}${milliseconds}Z`;
}
