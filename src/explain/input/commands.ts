import { parseArgs } from 'node:util';
import { isJsonObject } from '../../core/jose/json.ts';
import { completeUrl, splitShellWords } from './curl.ts';
import { type HeaderLine, type Input, readEach, unread } from './input.ts';

const methodForm = /^[A-Z]+$/;
/** `Name:value` is a header; the other separators are for data and the query. */
const item = /^([\w-]+)(:=@|:=|==|=@|:|=|@)([\s\S]*)$/;

export function isHttpie(text: string): boolean {
  return /^(?:[$>#%] ?)?(?:https?|xhs?) +(?:-|[A-Z]+ |[\w.:/[-])/.test(text) && !/^https?:\/\//.test(text);
}

const httpieOptions = {
  auth: { type: 'string', short: 'a' },
  'auth-type': { type: 'string', short: 'A' },
  bearer: { type: 'string' },
} as const;

/** Reads a command of HTTPie. It is not run. */
export function readHttpie(text: string): Input {
  const words = splitShellWords(text.replace(/^[$>#%] ?/, ''));
  if (words === undefined) return unread('The command has a quotation mark that is not closed. Copy it again.');
  const [program = '', ...args] = words;
  const { values, positionals } = parseArgs({ args, options: httpieOptions, strict: false, allowPositionals: true });
  const at = positionals.findIndex((word) => !methodForm.test(word));
  const target = positionals[at];
  if (target === undefined) return unread('The command has no URL. Copy the entire command.');
  const items = positionals.slice(at + 1).map((word) => item.exec(word) ?? []);
  const headers = items.flatMap(([, name = '', separator, value = '']): readonly HeaderLine[] =>
    separator === ':' ? [[name, value]] : [],
  );
  const query = items.flatMap(([, name = '', separator, value = '']) =>
    separator === '==' ? [`${encodeURIComponent(name)}=${encodeURIComponent(value)}`] : [],
  );
  const hasData = items.some(([, , separator]) => separator !== undefined && separator !== ':' && separator !== '==');
  const { bearer, auth, 'auth-type': type } = values;
  // The credentials of Basic are a secret, and not a token.
  if (typeof bearer === 'string') headers.push(['Authorization', `Bearer ${bearer}`]);
  else if (typeof auth === 'string')
    headers.push(['Authorization', /^bearer$/i.test(String(type)) ? `Bearer ${auth}` : 'Basic']);
  const method = positionals.find((word) => methodForm.test(word)) ?? (hasData ? 'POST' : 'GET');
  // `:8000/path` is on localhost.
  const local = target.replace(/^:(?=\/|$)/, 'localhost').replace(/^:(?=\d+(?:\/|$))/, 'localhost:');
  const url = completeUrl(local, program.endsWith('s') ? 'https' : 'http');
  const separator = url.includes('?') ? '&' : '?';
  return { kind: 'curl', method, url: query.length === 0 ? url : `${url}${separator}${query.join('&')}`, headers };
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

const commandLine = String.raw`(?=(?:PS [^>\n]*> ?)?(?:\$[\w.]+ = )?(?:Invoke-WebRequest|Invoke-RestMethod|iwr|irm)\s)`;

/** Reads `Invoke-WebRequest` and `Invoke-RestMethod`. None is run: `$token` stays unchanged. */
export function readPowerShells(text: string): Input {
  // A browser creates a session before each command.
  const start = Math.max(0, text.search(new RegExp(`^${commandLine}`, 'im')));
  return readEach(text.slice(start), new RegExp(String.raw`\r?\n${commandLine}`, 'i'), readPowerShell);
}

function readPowerShell(text: string): Input {
  // A backtick at the end continues a line.
  const [, rest = ''] = command.exec(text.replace(/`\r?\n/g, ' ')) ?? [];
  const url =
    readArgument(rest, 'Uri') ??
    readQuoted(new RegExp(`^\\s*(?:${quoted})`).exec(rest)) ??
    /^\s*(https?:\S+)/i.exec(rest)?.[1];
  if (url === undefined || !URL.canParse(url)) {
    return unread('The PowerShell command has no -Uri with an absolute URL. Write it with https:// and its host.');
  }
  const [, block = ''] = /-Headers\s+@\{([\s\S]*?)\}(?:[\s;]|$)/i.exec(rest) ?? [];
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

/** Reads calls of `fetch`. None is run: `${token}` stays unchanged. */
export function readFetchCalls(text: string): Input {
  return readEach(text, /\s*;?\s*\r?\n(?=(?:const \w+ = )?(?:await )?fetch\()/, readFetchCall);
}

function readFetchCall(text: string): Input {
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
