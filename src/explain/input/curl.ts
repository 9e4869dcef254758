import { parseArgs } from 'node:util';
import { type CallInput, type HeaderLine, type Input, joinHeader, type UnreadInput, unread } from './input.ts';

/** Options with a value, which is not a URL, and their letters. Other options have no value, and are ignored. */
const valued = (
  'header:H request:X cookie:b user:u data:d form:F upload-file:T user-agent:A referer:e output:o write-out:w proxy:x ' +
  'cookie-jar:c dump-header:D cert:E config:K max-time:m range:r proxy-user:U speed-time:y speed-limit:Y continue-at:C ' +
  'url oauth2-bearer data-urlencode data-raw data-binary data-ascii json cacert capath cert-type ciphers ' +
  'connect-timeout connect-to interface key key-type limit-rate max-redirs netrc-file noproxy pass proto proxy-header ' +
  'resolve retry retry-delay retry-max-time stderr tls-max trace trace-ascii unix-socket form-string aws-sigv4 ' +
  'abstract-unix-socket dns-servers doh-url local-port pinnedpubkey rate preproxy socks5 socks5-hostname'
).split(' ');

const options = {
  ...Object.fromEntries(
    valued.map((option) => {
      const [name, short] = option.split(':');
      return [name, { type: 'string', ...(short !== undefined && { short }) } as const];
    }),
  ),
  head: { type: 'boolean', short: 'I' },
  get: { type: 'boolean', short: 'G' },
} as const;

const jsonType = 'application/json';
const dataOptions: ReadonlySet<string> = new Set(['data', 'data-raw', 'data-binary', 'data-ascii', 'json']);
/** Methods that options imply. */
const implied: ReadonlyMap<string, string> = new Map([
  ...[...dataOptions, 'data-urlencode', 'form'].map((name) => [name, 'POST'] as const),
  ['upload-file', 'PUT'],
  ['head', 'HEAD'],
]);

/** Reads curl commands, such as all requests that a browser copies. None is run. */
export function readCurls(text: string): Input {
  const boundary = /(?:\s[;&])?\s*\r?\n(?=(?:[$>#%] ?)?curl(?:\.exe)?\s)/;
  const inputs = text.split(boundary).map((each) => readCurl(each.replace(/^[$>#%] ?/, '')));
  const calls = inputs.filter((each) => each.kind !== 'unread');
  const [first] = inputs;
  return first === undefined || (inputs.length > 1 && calls.length === inputs.length)
    ? { kind: 'calls', calls }
    : first;
}

/** Quotation marks, and dashes before an option, that a chat, a document or an e-mail has turned. */
const turned = { '“': '"', '”': '"', '„': '"', '‘': "'", '’': "'" } as const;

function readCurl(text: string): CallInput | UnreadInput {
  const straight = text
    .replace(/[“”„‘’]/g, (mark) => turned[mark as keyof typeof turned]) // as the pattern says
    .replace(/(?<=\s)[–—]-?(?=[a-z])(\w\w)?/gi, (_, name?: string) => (name === undefined ? '-' : `--${name}`));
  const words = splitShellWords(fromCmd(straight));
  if (words === undefined) return unread('The curl command has a quotation mark that is not closed. Copy it again.');
  const start = words.findIndex((word) => /^curl(?:\.exe)?$/.test(word)) + 1;
  // parseArgs takes quadratic time.
  const args = words.slice(start, start + 10_000);
  const { tokens } = parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true });
  const given = tokens.flatMap((token): readonly HeaderLine[] => {
    if (token.kind === 'option') return [[token.name, token.value ?? '']];
    return token.kind === 'positional' ? [['url', token.value]] : [];
  });
  const find = (name: string): string | undefined => given.find(([each]) => each === name)?.[1];
  const headers = given.flatMap(([name, value]) => readHeader(name, value));
  const isOfFile = given.some(([name, value]) => name === 'config' || (name === 'header' && value.startsWith('@')));
  if (isOfFile && joinHeader(headers, 'authorization') === null)
    return unread('The curl command reads headers from a file. Pipe in the sent request: curl -v prints it.');
  const data = given.filter(([name]) => dataOptions.has(name));
  const isGet = find('get') !== undefined;
  const hasBody = data.length > 0 && !isGet;
  const isJson = find('json') !== undefined;
  if (hasBody && joinHeader(headers, 'content-type') === null) {
    headers.push(['Content-Type', isJson ? jsonType : 'application/x-www-form-urlencoded']);
  }
  // All data options except `--data-raw` read a file after `@`, whose content is not known.
  const isFile = data.some(([name, value]) => name !== 'data-raw' && value.startsWith('@'));
  const url = find('url');
  const method = isGet ? 'GET' : (given.flatMap(([name]) => implied.get(name) ?? []).at(-1) ?? 'GET');
  return {
    kind: 'curl',
    method: given.findLast(([name]) => name === 'request')?.[1] ?? method,
    url: url === undefined || !URL.canParse(completeUrl(url)) ? undefined : completeUrl(url),
    headers,
    ...(hasBody && !isFile && { body: data.map(([, value]) => value).join(isJson ? '' : '&') }),
    ...(find('path-as-is') !== undefined && { isPathAsIs: true }),
    ...(straight !== text && {
      repairs: [{ id: 'quotation_marks', note: 'replaced typographic quotation marks and dashes' }],
    }),
  };
}

function readHeader(option: string, value: string): readonly HeaderLine[] {
  if (option === 'oauth2-bearer') return [['Authorization', `Bearer ${value}`]];
  if (option === 'user') return [['Authorization', 'Basic']];
  // A value without = names a file, which is not read.
  if (option === 'cookie') return value.includes('=') ? [['Cookie', value]] : [];
  if (option !== 'header' || value.startsWith('@')) return [];
  const colon = value.indexOf(':');
  // `Name;` is an empty value, and `Name:` removes a header.
  if (colon < 0) return value.endsWith(';') ? [[value.slice(0, -1), '']] : [];
  const content = value.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '');
  return content === '' ? [] : [[value.slice(0, colon), content]];
}

/** Removes the carets that escape characters in a command for cmd.exe. */
function fromCmd(text: string): string {
  return /\s\^"/.test(text) ? text.replace(/\^\r?\n/g, ' ').replace(/\^([\s\S])/g, '$1') : text;
}

/** curl adds http to a URL without a scheme. */
function completeUrl(url: string): string {
  return /^[a-z][a-z\d+.-]*:\/\//i.test(url) ? url : `http://${url}`;
}

/**
 * Parts of a shell line. Each has one group, except a continued line, which is also of cmd.exe or of PowerShell. Without the
 * limit of escaped characters, the stack of the regular expression could overflow.
 */
const pieces = [
  /[\\^`]\r?\n/,
  /(?<gap>[ \t\r]+)/,
  /(?<end>[|;&<>\n])/,
  /'(?<single>[^']*)'/,
  /\$'(?<ansi>[^'\\]*(?:\\[\s\S][^'\\]*){0,1000000})'/,
  /"(?<double>[^"\\]*(?:\\[\s\S][^"\\]*){0,1000000})"/,
  /(?<unclosed>['"]|\$')/,
  /\\(?<escaped>[\s\S])/,
  /(?<plain>[^ \t\r\n'"\\^`$|;&<>]+|[\\^`$])/,
];
const anyPiece = new RegExp(pieces.map(({ source }) => source).join('|'), 'g');

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/**
 * Splits the first command of a POSIX shell line into words: quotes, `$'…'`, backslashes, continued lines. Nothing is
 * expanded: `$TOKEN` stays unchanged. `undefined` if a quote is not closed.
 */
function splitShellWords(line: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  for (const { groups = {} } of line.matchAll(anyPiece)) {
    const { gap, end, unclosed, ansi, double, single, escaped, plain } = groups;
    if (unclosed !== undefined) return undefined;
    if (end !== undefined) break;
    if (gap !== undefined && word !== undefined) words.push(word);
    if (gap !== undefined) word = undefined;
    const text = single ?? escaped ?? plain ?? double?.replace(/\\(?:\r?\n|(["\\$`]))/g, '$1') ?? readAnsi(ansi);
    if (text !== undefined) word = (word ?? '') + text;
  }
  return word === undefined ? words : [...words, word];
}

function readAnsi(quoted: string | undefined): string | undefined {
  return quoted?.replace(/\\(?:u([\da-f]{4})|([\s\S]))/gi, (_, code: string | undefined, escaped: string) =>
    code === undefined ? (escapes[escaped] ?? escaped) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
