import { attempt } from '../attempt.ts';

/** No client encodes a URI more often. */
const maxDecodings = 8;
const headForm = /^[a-z][a-z\d+.-]*:(?:\/\/[^/?#]*)?/;
const schemeAlone = /^[a-z][a-z\d+.-]*:\/\/$/;
const encoded = /(?:%[\da-f]{2})+/gi;
const beyondAscii = /[\u0080-\uffff]+/g;
const unreadable = /[\\\p{Cc}]/u;
/** Tomcat removes parameters such as `;..` from a segment before it resolves the segment. */
const dotSegment = /(?:^|[/;?#])\.{1,2}(?:[/;?#]|$)|\/\//;
const parentInQuery = /(?:^|[\s/?#&=;:,+])\.\.(?:[\s/?#&=;:,+]|$)/;

/** Reads a URI that every server reads as one resource; `undefined` for every other string. */
export function readUri(uri: string) {
  return read(uri, normalizeUri(uri));
}

/** Reads the start of a URI, such as a key before its `*` or the text of a template before its first expression. */
export function readUriStart(start: string) {
  const href = normalizeUri(start);
  return read(start, schemeAlone.test(start) || href === `${start}/` ? start : href);
}

/** Returns the normal form of a URI; `undefined` if it is not a URI. */
export function normalizeUri(uri: string): string | undefined {
  return URL.canParse(uri) ? new URL(uri).href : undefined;
}

/** Returns the normal form of the WHATWG URL Standard; and `decoded` until nothing changes, with the authority in lower case. */
function read(uri: string, href: string | undefined): { readonly href: string; readonly decoded: string } | undefined {
  if (href === undefined || (uri !== href && encodeSpelling(uri) !== href.replaceAll(' ', '%20'))) return undefined;
  const decoded = attempt(decodeUri, href); // it throws for invalid UTF-8
  return decoded === undefined ? undefined : { href, decoded };
}

/** Encodes what clients leave unencoded, and nothing else. */
function encodeSpelling(uri: string): string {
  return uri
    .replace(/^[^:]*/, (scheme) => scheme.toLowerCase())
    .replace(beyondAscii, encodeURIComponent)
    .replaceAll(' ', '%20');
}

function decodeUri(href: string): string | undefined {
  const [head = ''] = headForm.exec(href) ?? [];
  const end = href.search(/[?#]|$/);
  const [authority, path, rest] = [head, href.slice(head.length, end), href.slice(end)].map(decode);
  if (authority === undefined || path === undefined || rest === undefined) return undefined;
  const decoded = authority.toLowerCase() + path + rest;
  return unreadable.test(decoded) || dotSegment.test(path) || parentInQuery.test(rest) ? undefined : decoded;
}

function decode(text: string): string | undefined {
  let decoded = text;
  for (let decodings = 0; decodings <= maxDecodings; decodings++) {
    const before = decoded;
    decoded = before.replace(encoded, decodeURIComponent);
    if (decoded === before) return decoded;
  }
  return undefined;
}
