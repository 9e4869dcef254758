import { isJsonObject } from '../../jose/json.ts';
import { splitShellWords } from './curl.ts';
import { type HeaderLine, type Input, unread } from './input.ts';

const methodForm = /^[A-Z]+$/;
/** `Name:value` is a header; the other separators are for data and the query. */
const item = /^([\w-]+)(:=@|:=|==|=@|:|=|@)([\s\S]*)$/;

export function isHttpie(text: string): boolean {
  return /^(?:[$>#%] ?)?(?:https?|xhs?) +(?:-|[A-Z]+ |[\w.:/[-])/.test(text) && !/^https?:\/\//.test(text);
}

/** Reads a command of HTTPie. It is not run. */
export function readHttpie(text: string): Input {
  const words = splitShellWords(text.replace(/^[$>#%] ?/, ''));
  if (words === undefined) return unread('The command has a quotation mark that is not closed. Copy it again.');
  const [program = '', ...rest] = words;
  const headers: HeaderLine[] = [];
  const plain: string[] = [];
  const query: string[] = [];
  let scheme = 'Basic';
  let secret: string | undefined;
  let hasData = false;
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? '';
    const [, flag, own] = /^(--auth-type|--auth|--bearer|-A|-a)(?:=?([\s\S]+))?$/.exec(word) ?? [];
    if (flag !== undefined) {
      const value = own ?? rest[++at] ?? '';
      if (flag === '--auth-type' || flag === '-A') scheme = /^bearer$/i.test(value) ? 'Bearer' : scheme;
      else secret = value;
      if (flag === '--bearer') scheme = 'Bearer';
    } else if (!word.startsWith('-')) {
      const [, name = '', separator, value = ''] = plain.some(isUrl) ? (item.exec(word) ?? []) : [];
      if (separator === undefined) plain.push(word);
      else if (separator === ':') headers.push([name, value]);
      else if (separator === '==') query.push(`${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
      else hasData = true;
    }
  }
  const target = plain.find(isUrl);
  if (target === undefined) return unread('The command has no URL. Copy the entire command.');
  // The credentials of Basic are a secret, and not a token.
  if (secret !== undefined) headers.push(['Authorization', scheme === 'Bearer' ? `Bearer ${secret}` : scheme]);
  const method = plain.find((word) => methodForm.test(word)) ?? (hasData ? 'POST' : 'GET');
  const url = completeUrl(target, /s$/.test(program) ? 'https' : 'http');
  return {
    kind: 'curl',
    method,
    url: query.length === 0 ? url : `${url}${url.includes('?') ? '&' : '?'}${query.join('&')}`,
    headers,
  };
}

function isUrl(word: string): boolean {
  return !methodForm.test(word);
}

/** `:8000/path` is on localhost, and the program decides the scheme of a URL without one. */
function completeUrl(url: string, scheme: string): string {
  if (/^:\d*(?:\/|$)/.test(url))
    return `${scheme}://localhost${url === ':' || url.startsWith(':/') ? url.slice(1) : url}`;
  return /^[a-z][a-z\d+.-]*:\/\//i.test(url) ? url : `${scheme}://${url}`;
}

const command = /(?:^|[\s|=(])(?:Invoke-WebRequest|Invoke-RestMethod|iwr|irm)\s([\s\S]*)$/i;
/** A quoted string, in which a backtick escapes the next character. */
const quoted = String.raw`"((?:${'`'}[\s\S]|""|[^"${'`'}])*)"|'((?:''|[^'])*)'`;
const pair = new RegExp(String.raw`(?:${quoted}|([\w-]+))\s*=\s*(?:${quoted}|(\$[\w.:]+))`, 'g');

export function isPowerShell(text: string): boolean {
  return (
    /^(?:PS [^>\n]*> ?)?(?:\$[\w.]+ = |Invoke-WebRequest |Invoke-RestMethod |iwr |irm )/i.test(text) &&
    command.test(text)
  );
}

/** Reads `Invoke-WebRequest` and `Invoke-RestMethod`. It is not run: `$token` stays unchanged. */
export function readPowerShell(text: string): Input {
  // A backtick at the end continues a line.
  const [, rest = ''] = command.exec(text.replace(/`\r?\n/g, ' ')) ?? [];
  const url =
    readArgument(rest, 'Uri') ??
    readQuoted(new RegExp(`^\\s*(?:${quoted})`).exec(rest)) ??
    /^\s*(https?:\S+)/i.exec(rest)?.[1];
  if (url === undefined || !URL.canParse(url)) {
    return unread('The PowerShell command has no -Uri with an absolute URL. Write it with https:// and its host.');
  }
  const [, block = ''] = /-Headers\s+@\{([\s\S]*?)\}(?:\s|$)/i.exec(rest) ?? [];
  const headers = [...block.matchAll(pair)].map((found): HeaderLine => {
    const [, name1, name2, name3, value1, value2, value3] = found;
    return [unquote(name1 ?? name2 ?? name3 ?? ''), unquote(value1 ?? value2 ?? value3 ?? '')];
  });
  return { kind: 'curl', method: readArgument(rest, 'Method')?.toUpperCase() ?? 'GET', url, headers };
}

function readArgument(text: string, name: string): string | undefined {
  const found = new RegExp(`(?:^|\\s)-${name}[\\s:]+(?:${quoted}|([^\\s"'@]+))`, 'i').exec(text);
  return readQuoted(found);
}

function readQuoted(found: RegExpExecArray | null): string | undefined {
  const value = found?.[1] ?? found?.[2] ?? found?.[3];
  return value === undefined ? undefined : unquote(value);
}

function unquote(text: string): string {
  return text.replace(/`([\s\S])|""/g, (_, character?: string) => character ?? '"');
}

const start = /^(?:const \w+ = )?(?:await )?fetch\(\s*(["'`])(.*?)\1/s;
/** A member of an object, with or without quotes around its name. */
const member = /\s*,?\s*(["'`]?)([\w-]+)\1\s*:\s*(["'`])((?:\\[\s\S]|(?!\3)[^\\])*)\3/;

export function isFetchCall(text: string): boolean {
  return start.test(text);
}

/** Reads a call of `fetch`. It is not run: `${token}` stays unchanged. */
export function readFetchCall(text: string): Input {
  const [all = '', , url = ''] = start.exec(text) ?? [];
  const rest = text.slice(all.length);
  const options = readJson(rest) ?? readLoosely(rest);
  if (!URL.canParse(url)) return unread('The URL of fetch() is not absolute. Write it with https:// and its host.');
  const { method = 'GET', headers, body } = options;
  return { kind: 'curl', method, url, headers, ...(body !== undefined && { body }) };
}

interface FetchOptions {
  readonly method: string | undefined;
  readonly headers: readonly HeaderLine[];
  /** Only in the JSON that browsers copy. */
  readonly body?: string;
}

function readJson(rest: string): FetchOptions | undefined {
  const from = rest.indexOf('{');
  const to = rest.lastIndexOf('}');
  if (from < 0) return { method: undefined, headers: [] };
  try {
    const options: unknown = JSON.parse(rest.slice(from, to + 1));
    if (!isJsonObject(options)) return undefined;
    const { method, headers, body } = options;
    const lines = isJsonObject(headers) ? Object.entries(headers) : [];
    return {
      method: typeof method === 'string' ? method : undefined,
      headers: lines.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : [])),
      ...(typeof body === 'string' && { body }),
    };
  } catch {
    return undefined;
  }
}

function readLoosely(rest: string): FetchOptions {
  const [, , method] = /\bmethod["'`]?\s*:\s*(["'`])(\w+)\1/.exec(rest) ?? [];
  const [opening] = /\bheaders["'`]?\s*:\s*(?:new Headers\(\s*)?\{/.exec(rest) ?? [];
  if (opening === undefined) return { method, headers: [] };
  const block = rest.slice(rest.indexOf(opening) + opening.length);
  // One after the other: a value may contain a brace.
  const members = [...block.matchAll(new RegExp(member, 'gy'))];
  return { method, headers: members.map(([, , name = '', , value = '']) => [name, value]) };
}
