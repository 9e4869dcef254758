import { type HeaderLine, type Input, unread } from './input.ts';
import { splitShellWords } from './shell-words.ts';

const methodForm = /^[A-Z]+$/;
/** `Name:value` is a header; the other separators are for data and the query. */
const item = /^([\w-]+)(:=@|:=|==|=@|:|=|@)([\s\S]*)$/;

/** Whether a text is a command of HTTPie or xh. */
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
  if (target === undefined) return unread('The command names no URL. Copy it whole.');
  // What stands behind Basic is no token, and a secret.
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

/** `:8000/path` is on this machine, and a URL without a scheme has that of the program. */
function completeUrl(url: string, scheme: string): string {
  if (/^:\d*(?:\/|$)/.test(url))
    return `${scheme}://localhost${url === ':' || url.startsWith(':/') ? url.slice(1) : url}`;
  return /^[a-z][a-z\d+.-]*:\/\//i.test(url) ? url : `${scheme}://${url}`;
}
