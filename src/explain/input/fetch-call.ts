import { isJsonObject } from '../../jose/json.ts';
import { type HeaderLine, type Input, unread } from './input.ts';

const start = /^(?:const \w+ = )?(?:await )?fetch\(\s*(["'`])(.*?)\1/s;
/** A member of an object as people write it, with or without quotes around its name. */
const member = /\s*,?\s*(["'`]?)([\w-]+)\1\s*:\s*(["'`])((?:\\[\s\S]|(?!\3)[^\\])*)\3/;

/** Whether a text is a call of `fetch`, as the tools of a browser copy one. */
export function isFetchCall(text: string): boolean {
  return start.test(text);
}

/** Reads a call of `fetch`. Nothing of it is run: `${token}` stays as it is written. */
export function readFetchCall(text: string): Input {
  const [all = '', , url = ''] = start.exec(text) ?? [];
  const rest = text.slice(all.length);
  const options = readJson(rest) ?? readLoosely(rest);
  if (!URL.canParse(url)) return unread('The URL of fetch() is not a whole one. Write it with https:// and its host.');
  return { kind: 'curl', method: options.method ?? 'GET', url, headers: options.headers };
}

interface FetchOptions {
  readonly method: string | undefined;
  readonly headers: readonly HeaderLine[];
}

/** The options as browsers copy them, which is JSON. */
function readJson(rest: string): FetchOptions | undefined {
  const from = rest.indexOf('{');
  const to = rest.lastIndexOf('}');
  if (from < 0) return { method: undefined, headers: [] };
  try {
    const options: unknown = JSON.parse(rest.slice(from, to + 1));
    if (!isJsonObject(options)) return undefined;
    const { method, headers } = options;
    const lines = isJsonObject(headers) ? Object.entries(headers) : [];
    return {
      method: typeof method === 'string' ? method : undefined,
      headers: lines.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : [])),
    };
  } catch {
    return undefined;
  }
}

/** The options as people write them. */
function readLoosely(rest: string): FetchOptions {
  const [, , method] = /\bmethod["'`]?\s*:\s*(["'`])(\w+)\1/.exec(rest) ?? [];
  const [opening] = /\bheaders["'`]?\s*:\s*(?:new Headers\(\s*)?\{/.exec(rest) ?? [];
  if (opening === undefined) return { method, headers: [] };
  const block = rest.slice(rest.indexOf(opening) + opening.length);
  // One after the other: a brace may stand inside a value.
  const members = [...block.matchAll(new RegExp(member, 'gy'))];
  return { method, headers: members.map(([, , name = '', , value = '']) => [name, value]) };
}
