import { parseArgs } from 'node:util';
import { type CallInput, type HeaderLine, type Input, joinHeader, type UnreadInput, unread } from './input.ts';

/** Options with a value, by their letter. */
const valuedLetters = {
  ...{ H: 'header', X: 'request', b: 'cookie', u: 'user', d: 'data', F: 'form', T: 'upload-file', A: 'user-agent' },
  ...{ e: 'referer', o: 'output', w: 'write-out', x: 'proxy', c: 'cookie-jar', D: 'dump-header', E: 'cert' },
  ...{ K: 'config', m: 'max-time', r: 'range', U: 'proxy-user', y: 'speed-time', Y: 'speed-limit', C: 'continue-at' },
};

/** Other options with a value, which is not a URL. */
const valuedNames = (
  'url oauth2-bearer data-urlencode data-raw data-binary data-ascii json cacert capath cert-type ciphers ' +
  'connect-timeout connect-to interface key key-type limit-rate max-redirs netrc-file noproxy pass proto proxy-header ' +
  'resolve retry retry-delay retry-max-time stderr tls-max trace trace-ascii unix-socket form-string aws-sigv4 ' +
  'abstract-unix-socket dns-servers doh-url local-port pinnedpubkey rate preproxy socks5 socks5-hostname'
).split(' ');

/** Other options than these have no value, and are ignored. */
const options = {
  ...Object.fromEntries(valuedNames.map((name) => [name, { type: 'string' } as const])),
  ...Object.fromEntries(
    Object.entries(valuedLetters).map(([short, name]) => [name, { type: 'string', short } as const]),
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

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/** Characters of a continued line's end: after a backslash, or a caret of cmd.exe, or a backtick of PowerShell. */
function continuation(line: string, at: number, marks: string): number {
  if (!marks.includes(line.charAt(at))) return 0;
  return line.startsWith('\n', at + 1) ? 2 : line.startsWith('\r\n', at + 1) ? 3 : 0;
}

const commandEnd = /[|;&<>\n]/;

/**
 * Splits the first command of a POSIX shell line into words: quotes, `$'…'`, backslashes, continued lines. Nothing is
 * expanded: `$TOKEN` stays unchanged. `undefined` if a quote is not closed.
 */
function splitShellWords(line: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < line.length; ) {
    const character = line.charAt(at);
    const continued = continuation(line, at, '\\^`');
    if (continued > 0) {
      at += continued;
    } else if (/[ \t\r]/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at++;
    } else if (character === "'" || character === '"' || line.startsWith("$'", at)) {
      const quoted = readQuoted(line, at);
      if (quoted === undefined) return undefined;
      word = (word ?? '') + quoted.text;
      at = quoted.end;
    } else if (commandEnd.test(character)) {
      break;
    } else {
      const isEscaped = character === '\\' && at + 1 < line.length;
      word = (word ?? '') + (isEscaped ? line.charAt(at + 1) : character);
      at += isEscaped ? 2 : 1;
    }
  }
  return word === undefined ? words : [...words, word];
}

/** Reads a quoted string; its end is the index after the closing quote. `undefined` if it is not closed. */
function readQuoted(line: string, start: number) {
  const isAnsi = line.charAt(start) === '$';
  const quote = line.charAt(isAnsi ? start + 1 : start);
  let text = '';
  for (let at = start + (isAnsi ? 2 : 1); at < line.length; at++) {
    const character = line.charAt(at);
    if (character === quote) return { text, end: at + 1 };
    const next = line.charAt(at + 1);
    const continued = quote === '"' && !isAnsi ? continuation(line, at, '\\') : 0;
    if (continued > 0) at += continued - 1;
    else if (character !== '\\' || (quote === "'" && !isAnsi) || (quote === '"' && !/["\\$`]/.test(next)))
      text += character;
    else if (isAnsi && next === 'u') {
      text += String.fromCharCode(Number.parseInt(line.slice(at + 2, at + 6), 16) || 0xfffd);
      at += 5;
    } else {
      text += isAnsi ? (escapes[next] ?? next) : next;
      at++;
    }
  }
  return undefined;
}
