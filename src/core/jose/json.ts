/** A JSON object, parsed and not yet looked into; frozen through and through, so that it can be shared. */
export type JsonObject = Readonly<Record<string, unknown>>;

const maxDepth = 20;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Removes a byte order mark, which a parser of JSON may ignore (RFC 8259 §8.1). Editors write one into files of any kind. */
export function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/**
 * Parses bytes into a JSON object; `undefined` for bad UTF-8, bad JSON, another type than an object, a byte
 * order mark, duplicate members at any level (RFC 7515 §4, RFC 7519 §4) or nesting over 20. An inexact number becomes the string
 * of its digits.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const parsed = parseStrictly(bytes, maxDepth);
  if (!isJsonObject(parsed?.value)) return undefined;
  const { text, value, count } = parsed;
  const mayBeInexact = count.hasLarge || (count.hasTiny && /e-/i.test(text)) || hasManyDigits(bytes);
  if (!mayBeInexact) return value;
  const exact = JSON.parse(text.replace(stringOrNumber, quoteInexact)) as JsonObject; // only numbers have changed
  countAndFreeze(exact, maxDepth, { members: 0, hasLarge: false, hasTiny: false });
  return exact;
}

/** Parses bytes like {@link parseJsonObject}, into an object or an array with at most `depth` levels. Its numbers are JavaScript's. */
export function parseJsonComposite(bytes: Uint8Array, depth: number): object | undefined {
  return parseStrictly(bytes, depth)?.value;
}

interface Count {
  members: number;
  /** True for a number beyond ±(2^53 − 1). */
  hasLarge: boolean;
  /** True for a number that is, or is read as, zero or nearly zero. */
  hasTiny: boolean;
}

function parseStrictly(bytes: Uint8Array, depth: number) {
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(bytes);
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const count = { members: 0, hasLarge: false, hasTiny: false };
  countAndFreeze(value, depth, count);
  // JSON.parse keeps the last of two equal names, so a duplicate shows as fewer members than colons.
  const isStrict = count.members === estimateColons(text) || count.members === countColons(text);
  return isStrict ? { text, value, count } : undefined;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Freezes a parsed value and counts its members: `NaN` if it has more than `depth` levels. */
function countAndFreeze(value: object, depth: number, count: Count): void {
  if (depth === 0) {
    count.members = Number.NaN;
  } else if (Array.isArray(value)) {
    for (const item of value) countWithin(item, depth, count);
  } else {
    const object = value as JsonObject; // JSON knows no other
    for (const name in object) {
      count.members++;
      countWithin(object[name], depth, count);
    }
  }
  Object.freeze(value);
}

function countWithin(value: unknown, depth: number, count: Count): void {
  if (typeof value === 'number') {
    const size = Math.abs(value);
    if (size > Number.MAX_SAFE_INTEGER) count.hasLarge = true;
    if (size < minNormal) count.hasTiny = true;
  } else if (typeof value === 'object' && value !== null) countAndFreeze(value, depth - 1, count);
}

/** Significant digits of a number that a double always distinguishes from others when it is written again. */
const maxDigits = 17;
const minNormal = 2 ** -1022;
/** A string, or a number that can be inexact: with an exponent, or as long as 2^53. */
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?(?:[\d.]{16,}|[\d.]+(?=e))(?:e[+-]?\d+)?/gi;

/**
 * Reports whether a number, as written, is inexact: its value is an integer beyond ±(2^53 − 1), or is read as one; it has more
 * than 17 significant digits, with zeros at the end; or it overflows or underflows. Rules: docs/behaviour.md §3.
 */
export function isInexact(text: string): boolean {
  const size = Math.abs(Number(text));
  if (!(size <= Number.MAX_SAFE_INTEGER)) return true;
  const digits = readDigits(text);
  return digits.length > maxDigits || (size < minNormal && digits.replace(/0+$/, '') !== readDigits(String(size)));
}

/** The significant digits: none for zero. */
function readDigits(text: string): string {
  return text.replace(/e.*/i, '').replaceAll(/[-+.]/g, '').replace(/^0+/, '');
}

function quoteInexact(token: string): string {
  return token.startsWith('"') || !isInexact(token) ? token : `"${token}"`;
}

/** Returns the offsets of the inexact numbers in valid JSON. */
export function findInexact(text: string): readonly number[] {
  const tokens = Array.from(text.matchAll(stringOrNumber));
  return tokens.filter(({ 0: token }) => quoteInexact(token) !== token).map(({ index }) => index);
}

/** Reports whether a number may have more than 17 digits. A run of 18 digits and points contains one byte in 18. */
function hasManyDigits(bytes: Uint8Array): boolean {
  for (let end = maxDigits, before: number; end < bytes.length; end = before + maxDigits + 1) {
    before = end;
    while (isDigitOrPoint(bytes[before])) before--;
    if (end - before <= maxDigits) continue;
    // A quotation mark directly before digits opens a string, such as a long `sub`.
    if (bytes[before] !== 0x22) return true;
    while (isDigitOrPoint(bytes[end])) end++;
    before = end;
  }
  return false;
}

function isDigitOrPoint(byte: number | undefined): boolean {
  return byte !== undefined && byte <= 0x39 && (byte >= 0x30 || byte === 0x2e);
}

/** No fewer than the colons outside strings, at a fraction of the price of their exact number. */
function estimateColons(text: string): number {
  let colons = 0;
  for (let i = text.indexOf(':'); i >= 0; i = text.indexOf(':', i + 1)) {
    const before = text.charCodeAt(i - 1);
    if (before === 0x22 || before <= 0x20) colons++;
  }
  return colons;
}

/** The colons outside strings. Right only for valid JSON. */
function countColons(text: string): number {
  let colons = 0;
  let isInside = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) isInside = !isInside;
    else if (code === 0x5c) i++;
    else if (code === 0x3a && !isInside) colons++;
  }
  return colons;
}

/** Seconds: the year 5138. What is larger was meant in milliseconds, and would never end. */
export const maxTime = 1e11;

/** NumericDate (RFC 7519 §2): seconds since the epoch, finite, 0…10^11. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxTime;
}

/** Decodes canonical unpadded base64url (RFC 7515 §2); `undefined` for anything else, and for nothing at all. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // The decoder of Node is lenient; only the canonical spelling encodes back to itself.
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : undefined;
}
