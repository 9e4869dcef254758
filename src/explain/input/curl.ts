import { type HeaderLine, type Input, unread } from './input.ts';
import { splitShellWords } from './shell-words.ts';

/** What curl's options say of the call, as far as it is looked at. */
interface Draft {
  method: string | undefined;
  url: string | undefined;
  readonly headers: HeaderLine[];
  /** The method if none is named. */
  implied: string;
  /** `-G`: data goes into the query. */
  isGet: boolean;
}

type Option = (draft: Draft, value: string) => void;

const imply =
  (method: string): Option =>
  (draft) => {
    draft.implied = method;
  };

/** Options that take a value and say something of the call, by their long name. */
const valued: ReadonlyMap<string, Option> = new Map<string, Option>([
  ['header', addHeader],
  ['oauth2-bearer', (draft, value) => draft.headers.push(['Authorization', `Bearer ${value}`])],
  ['user', (draft) => draft.headers.push(['Authorization', 'Basic'])],
  // A value without = is the name of a file, which is not read.
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
  ...['data', 'data-raw', 'data-binary', 'data-ascii', 'data-urlencode', 'form', 'json'].map(
    (name) => [name, imply('POST')] as const,
  ),
  ['upload-file', imply('PUT')],
]);

/** Options without a value that say something. */
const flags: ReadonlyMap<string, (draft: Draft) => void> = new Map<string, (draft: Draft) => void>([
  ['head', (draft) => imply('HEAD')(draft, '')],
  [
    'get',
    (draft) => {
      draft.isGet = true;
    },
  ],
]);

/** Other options with a value: it is no URL. */
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

/** Reads a curl command, as a browser copies one or a person writes one. It is not run. */
export function readCurl(text: string): Input {
  const words = splitShellWords(fromCmd(text));
  if (words === undefined) return unread('The curl command has a quotation mark that is not closed. Copy it again.');
  const draft: Draft = { method: undefined, url: undefined, headers: [], implied: 'GET', isGet: false };
  const rest = words.slice(words.findIndex((word) => /^curl(?:\.exe)?$/.test(word)) + 1);
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? '';
    if (!word.startsWith('-') || word === '-') draft.url ??= word;
    else if (word.startsWith('--')) at += takeLong(draft, word.slice(2), rest[at + 1]);
    else at += takeShort(draft, word.slice(1), rest[at + 1]);
  }
  const { method, url, headers, implied, isGet } = draft;
  return { kind: 'curl', method: method ?? (isGet ? 'GET' : implied), url: url && completeUrl(url), headers };
}

/** In a command for cmd.exe, as browsers copy one, a caret takes its meaning from the next character. */
function fromCmd(text: string): string {
  return /\s\^"/.test(text) ? text.replace(/\^\r?\n/g, ' ').replace(/\^([\s\S])/g, '$1') : text;
}

/** How many words it has used up besides itself. */
function takeLong(draft: Draft, name: string, value: string | undefined): number {
  if (!valued.has(name) && !skipped.has(name)) {
    flags.get(name)?.(draft);
    return 0;
  }
  if (value !== undefined) valued.get(name)?.(draft, value);
  return 1;
}

/** Letters may stand together (`-sSI`), and a value may follow at once (`-XPOST`). */
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

/** `Name: value`; `Name;` sends it empty, `Name:` takes it away, and `@file` is not read. */
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

/** curl takes http where no scheme is written. */
function completeUrl(url: string): string {
  return /^[a-z][a-z\d+.-]*:\/\//i.test(url) ? url : `http://${url}`;
}
