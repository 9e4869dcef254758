const defaultPorts: Readonly<Record<string, string>> = { http: '80', https: '443' };
const maxPort = 65_535;

// RFC 3986 §3 for http and https only. The host holds no percent-encoding, so its case says nothing of its meaning;
// the authority has no user information, for `@` is not among its characters.
const grammar = /^(https?):\/\/(\[[\da-f:.]+\]|[\w.~!$&'()*+,;=-]+)(?::(\d{0,5}))?(\/[^?#]*)?(?:[?#].*)?$/i;
// Readers disagree on these: a backslash is a slash to some, control characters vanish for others.
const refusedCharacters = /[^\x21-\x7e]|\\/;
const badEscape = /%(?![\da-f]{2})/i;
const escapesAndForeign = /%[\da-f]{2}|[^\w.~!$&'()*+,;=:@/%-]/gi;
const unreserved = /[\w.~-]/;

const maxShownLength = 512;

/**
 * Normalises an http(s) URL by syntax and scheme (RFC 3986 §6.2.2, §6.2.3) and drops its query and fragment (RFC 9449 §4.3
 * (9)). `undefined` for another scheme, user information, a backslash, white space, control or non-ASCII characters, and
 * invalid percent escapes. `URL` does not help: it also rewrites hosts and backslashes.
 */
export function normaliseUrl(text: string): string | undefined {
  if (refusedCharacters.test(text) || badEscape.test(text)) return undefined;
  const match = grammar.exec(text);
  if (match === null) return undefined;
  const [, rawScheme = '', host = '', port = '', path = '/'] = match;
  if (Number(port) > maxPort) return undefined;
  const scheme = rawScheme.toLowerCase();
  const digits = port.replace(/^0+(?=\d)/, '');
  const suffix = digits === '' || digits === defaultPorts[scheme] ? '' : `:${digits}`;
  return `${scheme}://${host.toLowerCase()}${suffix}${normalisePath(path)}`;
}

/**
 * Names what would make the two normalised URLs equal, for the operator's log: the option and the headers of a proxy, or
 * else the one that is wrong: `htu`, or the `path` of the request. What is `pinned` stands for whatever a proxy says.
 */
export function explainMismatch(
  expected: string | undefined,
  received: string | undefined,
  pinned?: string | undefined,
): string {
  if (received === undefined) return 'htu';
  if (expected === undefined) return 'path';
  const [expectedScheme, expectedHost, expectedPath] = split(expected);
  const [receivedScheme, receivedHost, receivedPath] = split(received);
  const headers: string[] = [];
  if (expectedScheme !== receivedScheme) headers.push('X-Forwarded-Proto');
  if (expectedHost !== receivedHost) headers.push('X-Forwarded-Host');
  if (expectedPath !== receivedPath) {
    // A proxy that removes or adds a prefix does not change the rest of the path.
    if (!receivedPath.endsWith(expectedPath) && !expectedPath.endsWith(receivedPath)) return 'path';
    headers.push('X-Forwarded-Prefix');
  }
  return pinned === undefined ? `trustProxy with ${headers.join(', ')}` : `externalUrl is ${pinned}`;
}

/** A URL that came from outside, fit for the operator's log: normalised and short, or words that stand for it. */
export function showUrl(url: string | undefined): string {
  if (url === undefined) return '(not a URL)';
  return url.length > maxShownLength ? '(too long)' : url;
}

/** Scheme, authority and path of a normalised URL, which always has all three. */
function split(url: string): readonly [string, string, string] {
  const host = url.indexOf('//') + 2;
  const path = url.indexOf('/', host);
  return [url.slice(0, host), url.slice(host, path), url.slice(path)];
}

function normalisePath(path: string): string {
  const decoded = path.replace(escapesAndForeign, normaliseCharacter);
  return decoded.includes('/.') ? removeDotSegments(decoded) : decoded;
}

/** Browsers leave some characters raw that RFC 3986 §3.3 has escaped (`|`, `[`): both spellings become the escaped one. */
function normaliseCharacter(text: string): string {
  const escaped = text.length === 1 ? `%${text.charCodeAt(0).toString(16)}` : text;
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return unreserved.test(character) ? character : escaped.toUpperCase();
}

/** RFC 3986 §5.2.4, for a path that starts with a slash. */
function removeDotSegments(path: string): string {
  const kept: string[] = [];
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  // A dot segment at the end leaves its slash behind.
  if (/\/\.\.?$/.test(path)) kept.push('');
  return `/${kept.join('/')}`;
}
