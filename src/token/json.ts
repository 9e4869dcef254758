/** A JSON object, parsed and not yet looked into. */
export type JsonObject = Readonly<Record<string, unknown>>;

const maxDepth = 20;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses bytes into a JSON object; `undefined` for bad UTF-8, bad JSON, another type than an object, a byte
 * order mark, duplicate members at any level (RFC 7515 §4, RFC 7519 §4) or nesting over 20.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  let value: unknown;
  let members: number;
  try {
    const text = utf8.decode(bytes);
    members = countMembers(text);
    if (members < 0) return undefined;
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  // JSON.parse keeps the last of two equal names, so a duplicate shows as fewer members than colons.
  return countParsedMembers(value) === members ? value : undefined;
}

/** Whether a parsed JSON value is an object, neither `null` nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Counts the colons outside strings; -1 when nested too deep. Sound for valid JSON, which `JSON.parse` checks. */
function countMembers(text: string): number {
  let members = 0;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) {
      i = endOfString(text, i + 1);
    } else if (code === 0x3a) {
      members++;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > maxDepth) return -1;
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    }
  }
  return members;
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

function countParsedMembers(value: object): number {
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && item !== null) members += countParsedMembers(item);
    return members;
  }
  for (const item of Object.values(value)) {
    members++;
    if (typeof item === 'object' && item !== null) members += countParsedMembers(item);
  }
  return members;
}
