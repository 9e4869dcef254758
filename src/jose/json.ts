/** A JSON object, parsed and not yet looked into; frozen through and through, so that it can be shared. */
export type JsonObject = Readonly<Record<string, unknown>>;

const maxDepth = 20;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses bytes into a JSON object; `undefined` for bad UTF-8, bad JSON, another type than an object, a byte
 * order mark, duplicate members at any level (RFC 7515 §4, RFC 7519 §4) or nesting over 20.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const value = parseJsonComposite(bytes, maxDepth);
  return isJsonObject(value) ? value : undefined;
}

/** Parses bytes like {@link parseJsonObject}, into an object or an array with at most `depth` levels. */
export function parseJsonComposite(bytes: Uint8Array, depth: number): object | undefined {
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(bytes);
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const members = freezeAndCount(value, depth);
  // JSON.parse keeps the last of two equal names, so a duplicate shows as fewer members than colons.
  return members === estimateColons(text) || members === countColons(text) ? value : undefined;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Freezes a parsed value and counts its members; `NaN` if it has more than `depth` levels. */
function freezeAndCount(value: object, depth: number): number {
  if (depth === 0) return Number.NaN;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += countWithin(item, depth);
  } else {
    const object = value as JsonObject; // JSON knows no other
    for (const name in object) members += 1 + countWithin(object[name], depth);
  }
  Object.freeze(value);
  return members;
}

function countWithin(value: unknown, depth: number): number {
  return typeof value === 'object' && value !== null ? freezeAndCount(value, depth - 1) : 0;
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
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = endOfString(text, i + 1);
    else if (code === 0x3a) colons++;
  }
  return colons;
}

/** Index of the closing quotation mark, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) return i;
    if (code === 0x5c) i++;
  }
  return text.length;
}

/** Seconds: the year 5138. What is larger was meant in milliseconds, and would never end. */
const maxTime = 1e11;

/** NumericDate (RFC 7519 §2): seconds since the epoch, finite, 0…10^11. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxTime;
}

/**
 * Decodes canonical unpadded base64url (RFC 7515 §2); `undefined` for anything else: padding, a foreign
 * character, white space, stray bits in the last character, or nothing at all.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // The decoder of Node is lenient; only the canonical spelling encodes back to itself.
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : undefined;
}
