import { type CallInput, type HeaderLine, type Input, type UnreadInput, unread } from './input.ts';
import { findDescription } from './response.ts';

/**
 * Characters between the name of a header and its value: quotes, separators, calls, a member `value`, Markdown, and the prefix
 * of a string in Python and C#.
 */
const gap =
  /["'`\\\])*]*(?:\s{0,20}(?:[:=,|]|=>)>?\*{0,2}\s{0,20}|\s{1,40}(?=["'`]?value))(?:["'`]?value["'`]?\s{0,9}[:=]\s{0,9})?\[?\s{0,9}(?:[bfru$@]{1,2}(?=["']))?/iy;
/** Arguments of a class for credentials, as in C#. */
const constructed = /\(\s*["'](\w+)["']\s*,\s*(?:["']([^"'\n]*)["'])?/y;
const quoted = /(\\{0,9})(["'`])((?:(?!\1\2)[^\r\n]){0,20000})\1\2(\s*[+.]\s*\w)?/y;
/** Schemes, then one word. */
const bare = /(?:(?:bearer|dpop|basic|token|jwt|oauth):? +)*(?:(?!<\/|: )[^\s"'`\\,;)\]}])+/iy;
const names = /(?:(?<![\w-])|(?<=\\n))(?:(?:HTTP_)?authorization|dpop|AuthenticationHeaderValue)(?![\w-])/gi;
/** Before a name in a comment of a program or a file. */
const comment = /(?:\/\/|#)\s{0,3}["'`]?$/;
const proofForm = /^ey[\w-]+\.[\w-]+\.[\w-]+$/;
const variable = /\$(?:[{\w(]|$)|\{\{|^\{|\s\{\w*\}$|^(?:bearer|dpop)?\s*%\w+%?$/i;
const namedToken =
  /(?<![\w-])(access_?token|id_?token|token|jwt)["'`\\]*\s{0,9}[:=]\s{0,9}(?:["'`\\]+(ey[\w-]+\.[\w-]+\.[^\s"'`\\]*)|(ey[\w-]+\.[\w-]+\.[^\s"'`\\<>&#,;)\]}]*))/gi;
const anyToken = /(?<![\w.-])ey[\w-]+\.ey[\w-]+\.[\w-]+/g;
const methodForm =
  /\bmethod["']?(?:\s*[:=]\s*|\s+)["']?(get|head|post|put|patch|delete)\b|Method\.(\w+)|\.(get|head|post|put|patch|delete)(?:Async)?\s*\(|NewRequest\("(\w+)"|\b(get|head|post|put|patch|delete) ['"]?https?:/i;
/** The value of a header without its name, such as in an access log. */
const anyQuotedBearer = /(["'`])(?<![:=(,>{[]\s{0,3}\1)(bearer ey[\w-]+\.[\w-]+\.[\w-]*)\1/i;
const takenBearer = { id: 'taken', note: 'a quoted value of the text, as Authorization' };
/** A token in the query of a URL. */
const anyNamed = /[?&]\w+=ey[\w-]+\.[\w-]+\./;
/** The request in a line of an access log. */
const loggedTarget = /"([A-Z]{3,10}) (\/[^\s"]{0,20000}) HTTP\/\d/;
const inCookie = /cookie["'`\\]*\s*[:=][^\n]*$/i;
const anyUrl = /(?:https?|wss?):\/\/[^\s"'`<>)\\]+/;
const anyUrls = new RegExp(anyUrl.source, 'g');
const namedUrl = new RegExp(`\\b(?:url|uri|raw)["']?\\s*[:=]?\\s*["'\`]?(${anyUrl.source})`, 'gi');
/** The status in a line of an access log, and in an error of an HTTP client. */
const statusForm = /" (401|403) \d+|(?<![\w.:/-])(401|403)(?![\w.:/-])/g;
/** Marks a value that the program inserts. */
const inVariable = '${';
/** Most names of headers that are read. */
const maxNames = 500;

const severalTokens: UnreadInput = unread('The input has several tokens. Pipe in one at a time.');
const inserted = unread('The text inserts the token from a variable. Pipe in the sent request: curl -v prints it.');
const unnamed = unread(
  'The text has a token, and does not show how it was sent. Pipe in the token, or the request with its Authorization header.',
);
/** The result for text without a token and without a status. */
export const unknownText: UnreadInput = unread(
  'The input is not recognised. Pipe in a token, a curl command, a HAR, a request, a response or a log line.',
);

/**
 * Reads text of any form: a program, JSON, YAML, a message of an HTTP client. Finds Authorization and DPoP with their
 * values, which stay unchanged; without them a token with its name, or the status of a response.
 */
export function readOtherText(text: string): Input {
  const found = findHeaders(text);
  const values = new Set(found.flatMap(([name, value]) => (name === 'Authorization' ? [value] : [])));
  const [value] = values;
  const tokens = new Set(text.match(anyToken));
  if (values.size > 1) return severalTokens;
  if (value !== undefined) {
    const [token] = tokens;
    const isInserted = variable.test(value);
    if (isInserted && (token === undefined || tokens.size > 1 || !isEntire(text, token))) return inserted;
    const headers = found.filter(([name], index) => found.findIndex(([each]) => each === name) === index);
    const sent = headers.map(([name, each]): HeaderLine => {
      return name === 'Authorization' && isInserted ? [name, `${/^\w*/.exec(each)?.[0] ?? ''} ${token}`] : [name, each];
    });
    const note = `${sent.map(([name]) => name).join(' and ')} of the text`;
    return { ...readTarget(text), headers: sent, repairs: [{ id: 'taken', note }] };
  }
  const inUrl = (text.match(anyUrls) ?? []).find((each) => URL.canParse(each) && anyNamed.test(new URL(each).search));
  if (inUrl !== undefined) return { ...readTarget(text), kind: 'curl', url: toHttp(inUrl), headers: [] };
  const [, method, target = ''] = loggedTarget.exec(text) ?? [];
  if (method !== undefined && anyNamed.test(target))
    return { kind: 'request', method, url: `http://localhost${target}`, headers: [] };
  const [, , quotedValue] = anyQuotedBearer.exec(text) ?? [];
  if (quotedValue !== undefined && tokens.size === 1) {
    return { ...readTarget(text), headers: [['Authorization', quotedValue]], repairs: [takenBearer] };
  }
  const uses = [...text.matchAll(namedToken)].filter(({ index }) => !inCookie.test(lineBefore(text, index)));
  const named = new Map(
    uses.map(([, name = '', quotedToken, token = quotedToken ?? '']) => [name.toLowerCase(), token]),
  );
  const [only] = new Set(named.values());
  const token = named.get('access_token') ?? named.get('accesstoken') ?? only;
  if (token !== undefined) {
    if (new Set(named.values()).size > 1 && token === only && !named.has('access_token')) return severalTokens;
    return {
      kind: 'token',
      headers: [['Authorization', `Bearer ${token}`]],
      repairs: [{ id: 'taken', note: 'a token of the text, as if sent with Bearer' }],
    };
  }
  if (tokens.size > 0) return tokens.size > 1 ? severalTokens : unnamed;
  return readStatus(text) ?? unknownText;
}

/** Reports whether a token is an entire value: nothing is between it and a quotation mark, a separator or white space. */
function isEntire(text: string, token: string): boolean {
  const at = text.indexOf(token);
  const [before, after] = [text.charAt(at - 1), text.charAt(at + token.length)];
  return /["'`]/.test(after) ? before === after : /^[\s;,)\]}&<]?$/.test(after);
}

/** The part of its line before this index, at most 2,000 characters. */
function lineBefore(text: string, index: number): string {
  return text.slice(Math.max(text.lastIndexOf('\n', index) + 1, index - 2000), index);
}

/** The headers in the order of the text, with their unchanged values. */
function findHeaders(text: string): readonly HeaderLine[] {
  const headers: HeaderLine[] = [];
  names.lastIndex = 0;
  for (let count = 0; count < maxNames; count++) {
    const match = names.exec(text);
    if (match === null) break;
    if (comment.test(text.slice(Math.max(0, match.index - 6), match.index))) continue;
    const isProof = match[0].toLowerCase() === 'dpop';
    const value = readValue(text, names.lastIndex, text.charAt(match.index - 1));
    if (value === undefined || (isProof && !proofForm.test(value.text))) continue;
    headers.push([isProof ? 'DPoP' : 'Authorization', value.text]);
    names.lastIndex = value.end;
  }
  return headers;
}

function readValue(text: string, at: number, before: string) {
  const match = (form: RegExp, from: number): RegExpExecArray | null => {
    form.lastIndex = from;
    return form.exec(text);
  };
  const made = match(constructed, at);
  if (made !== null) return { text: `${made[1]} ${made[2] ?? inVariable}`, end: at + made[0].length };
  const separator = match(gap, at);
  if (separator === null) return undefined;
  const from = at + separator[0].length;
  // The quotation mark before the name ends the value: "Authorization: Bearer …".
  const isInside = /["'`]/.test(before) && text.charAt(at) !== before && text.charAt(at) !== '\\';
  const within = match(quoted, from);
  if (within !== null && !isInside) {
    const [all, , , value = '', more] = within;
    return { text: more === undefined ? value : value + inVariable, end: from + all.length };
  }
  const isLine = /(?:^|\n)\s*[<>*]?\s*\w+$/.test(text.slice(Math.max(0, at - 20), at));
  const end = isInside ? before : '\n';
  if (isInside || isLine) {
    const [value = ''] = text.slice(from, from + maxValue).split(end, 1);
    const sent = value.replace(/(?:\[?\\[rn]|<\/\w)[\s\S]*$/, '');
    // In a string of JSON, the quotation mark is escaped.
    return { text: (isInside ? sent.replace(/\\{1,9}$/, '') : sent).trim(), end: from + value.length };
  }
  const word = match(bare, from);
  return word === null || word[0] === 'new' ? undefined : { text: word[0], end: from + word[0].length };
}

/** Characters of a value that are read. */
const maxValue = 20_000;

function readTarget(text: string): Pick<CallInput, 'kind' | 'method' | 'url'> {
  const urls = new Set([...text.matchAll(namedUrl)].map(([, each = '']) => each));
  const [named = anyUrl.exec(text)?.[0]] = urls;
  const url = urls.size > 1 ? undefined : named?.replace(/[,.;:]+$/, '');
  const [, ...methods] = methodForm.exec(text) ?? [];
  if (url === undefined || !URL.canParse(url)) return { kind: 'authorization' };
  return { kind: 'curl', method: methods.find((each) => each !== undefined)?.toUpperCase() ?? 'GET', url: toHttp(url) };
}

/** A WebSocket begins as a request of HTTP. */
const toHttp = (url: string): string => url.replace(/^ws/i, 'http');

function readStatus(text: string): Input | undefined {
  const [status, ...others] = new Set([...text.matchAll(statusForm)].map(([, logged, word = logged]) => word));
  const description = findDescription(text);
  const isOne = status !== undefined && others.length === 0;
  if (!isOne && description === undefined) return undefined;
  return { kind: 'response', status: isOne ? Number(status) : undefined, description };
}
