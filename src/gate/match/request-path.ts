/** The path of a request, as rules are matched against it. */
export interface RequestPath {
  /** Decoded once; an encoded slash inside one is {@link slashMark}. */
  readonly segments: readonly string[];
  readonly hasEncodedSlash: boolean;
}

/** Stands for an encoded slash in a segment. No segment can hold this character itself: control characters are refused. */
export const slashMark = '\0';

const deceitfulEscape = /%(?:[01][\da-f]|7f|5c|2e|3b|3f|23)/i;
const escapeOrControl = /%[\da-f]{2}|[\u0080-\u009f]/i;

/**
 * Reads the path of a request target. `undefined` for one that the next reader may understand as another path: dot
 * segments, `//`, `;`, `\`, `#`, and escapes of what separates or ends something. Escapes are decoded whole: `%40` and
 * `@` are one character to every server behind a gate, so a rule must not tell them apart.
 */
export function readRequestPath(target: string): RequestPath | undefined {
  if (target.charCodeAt(0) !== 0x2f) return undefined;
  const query = target.indexOf('?');
  const end = query < 0 ? target.length : query;
  const segments: string[] = [];
  let start = 1;
  let hasEscape = false;
  for (let i = 1; i < end; i++) {
    const code = target.charCodeAt(i);
    if (code === 0x2f) {
      if (i === start) return undefined;
      segments.push(target.slice(start, i));
      start = i + 1;
    } else if (code === 0x25) {
      hasEscape = true;
    } else if (code <= 0x20 || code >= 0x7f || code === 0x5c || code === 0x3b || code === 0x23) {
      return undefined;
    }
  }
  // One slash at the end makes no difference.
  if (start < end) segments.push(target.slice(start, end));
  if (hasEscape) return decodeSegments(segments);
  return segments.some(isDotSegment) ? undefined : { segments, hasEncodedSlash: false };
}

function decodeSegments(encoded: readonly string[]): RequestPath | undefined {
  const segments: string[] = [];
  let hasEncodedSlash = false;
  for (const text of encoded) {
    const segment = text.includes('%') ? decodeSegment(text) : text;
    if (segment === undefined) return undefined;
    const parts = segment.split(slashMark);
    // The next reader may take an encoded slash for a plain one: then these would be dot segments.
    if (parts.some(isDotSegment)) return undefined;
    if (parts.length > 1) hasEncodedSlash = true;
    segments.push(segment);
  }
  return { segments, hasEncodedSlash };
}

function decodeSegment(text: string): string | undefined {
  if (deceitfulEscape.test(text)) return undefined;
  let decoded: string;
  try {
    decoded = decodeURIComponent(text.replace(/%2f/gi, '%00'));
  } catch {
    return undefined; // no valid escape, or no valid UTF-8
  }
  // An escape that is left would be decoded a second time by a careless reader.
  return escapeOrControl.test(decoded) ? undefined : decoded;
}

function isDotSegment(segment: string): boolean {
  return segment === '.' || segment === '..';
}
