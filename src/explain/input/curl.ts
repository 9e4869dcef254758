import { type CallInput, type HeaderLine, type Input, joinHeader, unread } from './input.ts';

interface Draft {
  method: string | undefined;
  url: string | undefined;
  readonly headers: HeaderLine[];
  implied: string;
  /** `-G`: data goes into the query. */
  isGet: boolean;
  /** `--path-as-is`: dot segments stay. */
  isPathAsIs: boolean;
  /** Values of data options, and the type that curl sends with them. */
  readonly data: string[];
  type: string | undefined;
}

type Option = (draft: Draft, value: string) => void;

const imply =
  (method: string): Option =>
  (draft) => {
    draft.implied = method;
  };

const jsonType = 'application/json';
/** Stands for data that curl reads from a file. */
const fileContent = '@';

/** Adds data. All options except `--data-raw` read a file after `@`. */
function addData(name: string): Option {
  return (draft, value) => {
    imply('POST')(draft, value);
    draft.data.push(name !== 'data-raw' && value.startsWith('@') ? fileContent : value);
    draft.type = name === 'json' ? jsonType : (draft.type ?? 'application/x-www-form-urlencoded');
  };
}

/** Options with a value that describes the request, by their long name. */
const valued: ReadonlyMap<string, Option> = new Map<string, Option>([
  ['header', addHeader],
  ['oauth2-bearer', (draft, value) => draft.headers.push(['Authorization', `Bearer ${value}`])],
  ['user', (draft) => draft.headers.push(['Authorization', 'Basic'])],
  // A value without = names a file, which is not read.
  ['cookie', (draft, value) => value.includes('=') && draft.headers.push(['Cookie', value])],
  [
    'request',
    (draft, value) => {
      draft.method = value;
    },
  ],
  [
    'url',
    (draft, value) => {
      draft.url ??= value;
    },
  ],
  ...['data-urlencode', 'form'].map((name) => [name, imply('POST')] as const),
  ...['data', 'data-raw', 'data-binary', 'data-ascii', 'json'].map((name) => [name, addData(name)] as const),
  ['upload-file', imply('PUT')],
]);

const flags: ReadonlyMap<string, (draft: Draft) => void> = new Map<string, (draft: Draft) => void>([
  ['head', (draft) => imply('HEAD')(draft, '')],
  [
    'get',
    (draft) => {
      draft.isGet = true;
    },
  ],
  [
    'path-as-is',
    (draft) => {
      draft.isPathAsIs = true;
    },
  ],
]);

/** Other options with a value, which is not a URL. */
const skipped: ReadonlySet<string> = new Set(
  (
    'cacert capath cert cert-type ciphers config connect-timeout connect-to cookie-jar dump-header interface key key-type ' +
    'limit-rate max-time max-redirs netrc-file noproxy output pass proto proxy proxy-header proxy-user range referer ' +
    'resolve retry retry-delay retry-max-time stderr tls-max trace trace-ascii unix-socket user-agent write-out ' +
    'form-string aws-sigv4 abstract-unix-socket continue-at dns-servers doh-url local-port pinnedpubkey speed-limit ' +
    'speed-time rate preproxy socks5 socks5-hostname'
  ).split(' '),
);

const longNames: Readonly<Record<string, string>> = {
  H: 'header',
  X: 'request',
  b: 'cookie',
  u: 'user',
  d: 'data',
  F: 'form',
  T: 'upload-file',
  I: 'head',
  G: 'get',
  A: 'user-agent',
  e: 'referer',
  o: 'output',
  w: 'write-out',
  x: 'proxy',
  c: 'cookie-jar',
  D: 'dump-header',
  E: 'cert',
  K: 'config',
  m: 'max-time',
  r: 'range',
  U: 'proxy-user',
  y: 'speed-time',
  Y: 'speed-limit',
  C: 'continue-at',
};

/** Reads curl commands, such as all requests that a browser copies. None is run. */
export function readCurls(text: string): Input {
  const commands = text
    .split(/(?:\s[;&])?\s*\r?\n(?=(?:[$>#%] ?)?curl(?:\.exe)?\s)/)
    .map((each) => each.replace(/^[$>#%] ?/, ''));
  const read = commands.map(readCurl);
  const [first = readCurl(text)] = read;
  const calls = read.filter((each): each is CallInput => 'headers' in each);
  return read.length < 2 || calls.length < read.length ? first : { kind: 'calls', calls };
}

function readCurl(text: string): Input {
  const words = splitShellWords(fromCmd(text));
  if (words === undefined) return unread('The curl command has a quotation mark that is not closed. Copy it again.');
  const draft: Draft = {
    method: undefined,
    url: undefined,
    headers: [],
    implied: 'GET',
    isGet: false,
    isPathAsIs: false,
    data: [],
    type: undefined,
  };
  const rest = words.slice(words.findIndex((word) => /^curl(?:\.exe)?$/.test(word)) + 1);
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? '';
    if (!word.startsWith('-') || word === '-') draft.url ??= word;
    else if (word.startsWith('--')) at += takeLong(draft, word.slice(2), rest[at + 1]);
    else at += takeShort(draft, word.slice(1), rest[at + 1]);
  }
  const { method, url, headers, implied, isGet, isPathAsIs, data, type } = draft;
  const hasBody = data.length > 0 && !isGet;
  if (hasBody && type !== undefined && joinHeader(headers, 'content-type') === null) {
    headers.push(['Content-Type', type]);
  }
  return {
    kind: 'curl',
    method: method ?? (isGet ? 'GET' : implied),
    url: url && completeUrl(url),
    headers,
    // The content of a file is not known.
    ...(hasBody && !data.includes(fileContent) && { body: data.join(type === jsonType ? '' : '&') }),
    ...(isPathAsIs && { isPathAsIs }),
  };
}

/** Removes the carets that escape characters in a command for cmd.exe. */
function fromCmd(text: string): string {
  return /\s\^"/.test(text) ? text.replace(/\^\r?\n/g, ' ').replace(/\^([\s\S])/g, '$1') : text;
}

/** Applies an option. Returns the number of further words that it takes. */
function takeLong(draft: Draft, name: string, value: string | undefined): number {
  if (!valued.has(name) && !skipped.has(name)) {
    flags.get(name)?.(draft);
    return 0;
  }
  if (value !== undefined) valued.get(name)?.(draft, value);
  return 1;
}

/** Applies letters, which may be joined (`-sSI`) and end with a value (`-XPOST`). */
function takeShort(draft: Draft, letters: string, value: string | undefined): number {
  for (let at = 0; at < letters.length; at++) {
    const name = longNames[letters.charAt(at)];
    if (name === undefined) continue;
    if (!valued.has(name) && !skipped.has(name)) flags.get(name)?.(draft);
    else {
      const own = letters.slice(at + 1);
      return takeLong(draft, name, own === '' ? value : own) === 1 && own === '' ? 1 : 0;
    }
  }
  return 0;
}

/** Adds `Name: value`, or `Name;` with an empty value. Ignores `Name:` and `@file`. */
function addHeader(draft: Draft, line: string): void {
  if (line.startsWith('@')) return;
  const colon = line.indexOf(':');
  if (colon < 0) {
    if (line.endsWith(';')) draft.headers.push([line.slice(0, -1), '']);
    return;
  }
  const value = line.slice(colon + 1).trim();
  if (value !== '') draft.headers.push([line.slice(0, colon).trim(), value]);
}

/** curl adds http to a URL without a scheme. */
function completeUrl(url: string): string {
  return /^[a-z][a-z\d+.-]*:\/\//i.test(url) ? url : `http://${url}`;
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

const commandEnd = /[|;&<>\n]/;

/**
 * Splits the first command of a POSIX shell line into words: quotes, `$'…'`, backslashes, continued lines. Nothing is
 * expanded: `$TOKEN` stays unchanged. `undefined` if a quote is not closed.
 */
export function splitShellWords(text: string): readonly string[] | undefined {
  // A caret continues a line of cmd.exe, a backtick one of PowerShell.
  const line = text.replace(/[\\^`]\r?\n/g, ' ');
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < line.length; ) {
    const character = line.charAt(at);
    if (/[ \t\r]/.test(character)) {
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

interface Quoted {
  readonly text: string;
  /** Index after the closing quote. */
  readonly end: number;
}

function readQuoted(line: string, start: number): Quoted | undefined {
  const isAnsi = line.charAt(start) === '$';
  const quote = line.charAt(isAnsi ? start + 1 : start);
  let text = '';
  for (let at = start + (isAnsi ? 2 : 1); at < line.length; at++) {
    const character = line.charAt(at);
    if (character === quote) return { text, end: at + 1 };
    const next = line.charAt(at + 1);
    if (character !== '\\' || (quote === "'" && !isAnsi) || (quote === '"' && !/["\\$`]/.test(next))) text += character;
    else if (isAnsi && next === 'u') {
      text += String.fromCharCode(Number.parseInt(line.slice(at + 2, at + 6), 16) || 0xfffd);
      at += 5;
    } else {
      text += isAnsi ? (escapes.get(next) ?? next) : next;
      at++;
    }
  }
  return undefined;
}
