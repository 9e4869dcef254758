import { attempt } from '../../core/attempt.ts';
import { isJsonObject } from '../../core/jose/json.ts';
import { readCurls } from './curl.ts';
import { findForeign } from './foreign-texts.ts';
import { type Input, joinHeader, joinHeaderLines, type UnreadInput, unread } from './input.ts';
import { type EntryChoice, readHar, readJsonRequest } from './json-request.ts';
import { findLogged, splitLogLines } from './log-lines.ts';
import { readOtherText, unknownText } from './other-text.ts';
import { isRawRequest, readHeaderLines, readRawRequest } from './raw-request.ts';
import { decodedPercent, decodePercent, jwtForm, type RepairedToken, repairToken } from './repair.ts';
import { findDescription, isResponse, readResponse, readResponseBody } from './response.ts';

const bearerValue = /^(?!\w+\s*=\s*["'])(?:bearer|dpop|basic|token|jwt|oauth)(?::?\s|:|%20|\+|$)/i;
/** Colours and links of a terminal. No header can have them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with ESC
const terminalCodes = /\x1b(?:\[[\d;?]{0,40}[A-Za-z~]|\][^\x07\x1b]{0,4000}(?:\x07|\x1b\\))/g;
const placeholder = /^(?:<[^<>\n]*>|\[object \w+\])$/;
/** `TOKEN=…`, as in a shell, a file of variables, or the fragment of a URL. */
const assignment = /^(?:export +|set +|\$env:)?\w+ ?= ?["']?(ey[\w-]+\.[\w-]+\.[\w-]*)["']?(?:;|&\S*)?$/;
/** The header or the claims of a token, as decoders show them. */
const decodedForm = /"(?:alg|iss|aud)"\s*:/;
const decodedToken = unread('This is a decoded token. Pipe in the encoded one: three parts, with dots between them.');
/** Control characters of binary data, and replacements of bytes that are not UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches control characters
const notText = /[\x00-\x08\x0e-\x1a\x1c-\x1f]|\ufffd{2}/;
const tokenLines = /^(?:ey[\w-]+\.[\w-]+\.[\w-]+\r?\n+)+(?=curl\s)/;
/** The value of a header in quotation marks, which a chat may have turned. */
const quotedValue = /^["'`“„‘]((?:bearer|dpop|basic|token|jwt|oauth):?[ \t][^"'`“”’\n]*)["'`“”’]$/i;
/** A header, or its value, with nothing but credentials. */
const credentialsOnly = /^(?:authorization: *)?(bearer|dpop)[ \t]*(\s*ey[\s\S]+)$/i;
/** A prompt of cmd.exe, and an argument in the quotation marks of another shell. */
const cmdQuotes = /^[a-z]:\\[^\n>]*>\s*curl\b[^\n"]* '/i;
const variableLine = /^@([\w-]+)[ \t]*=[ \t]*(\S.*?)\s*$/gm;
/** Lines that are all headers, and a header that requests have. */
const headerLines = /^(?:(?:[<>] )?:?[a-z][a-z\d-]*:.*(?:\r?\n(?:[ \t].*)?)?)+$/i;
const knownHeader =
  /^(?:[<>] )?(?:authorization|dpop|cookie|host|origin|referer|user-agent|accept[\w-]*|content-[\w-]+|sec-[\w-]+|x-[\w-]+|:\w+)\s*:/im;

export const emptyInput: UnreadInput = unread(
  'The input is empty. Pipe in a token, a curl command, a HAR, a request or a log line.',
);

/**
 * Recognises input by its first characters and reads it: a curl command, a HAR, a log line, an HTTP request, a response,
 * header lines, a token. One reader searches every other text. Any other word is treated as a token.
 */
export function readInput(text: string, { entry }: { readonly entry?: EntryChoice } = {}): Input {
  const read = readKnown(text, entry);
  const isHidden =
    'headers' in read && (elided.test(text) || hiddenValue.test(joinHeader(read.headers, 'authorization') ?? ''));
  const input = isHidden ? shortened : joinAll(read);
  const isCall = 'calls' in input || 'fields' in input || ('headers' in input && anyToken.test(text));
  const foreign = isCall ? undefined : findForeign(text.slice(0, maxSearched));
  if (foreign === undefined) return input;
  return input.kind === 'response' ? { ...input, foreign } : readResponse(text.slice(0, maxSearched));
}

/** A value that a console has shortened, or a log has masked. */
const hiddenValue = /^(?:\w+ +)?(?:ey[\w.-]*)?(?:…|\*{3,}|•{3,}|\[?<?(?:redacted|filtered|masked|hidden|sanitized)\b)/i;
/** A string that Node has shortened when it printed an object. */
const elided = /(?<=[\w-]{20}["'`])\.\.\. \d+ more characters/;
const shortened = unread(
  'The text has the token shortened or masked, so nothing can be said about it. Pipe in the token that was sent.',
);

function joinAll(input: Input): Input {
  if ('calls' in input) return { ...input, calls: input.calls.map(joinHeaderLines) };
  return 'headers' in input ? joinHeaderLines(input) : input;
}

/** Searched at its first dot, so that the time is linear. */
const anyToken = /\.(?<=ey[\w-]+\.)[\w-]+\./;
/** Characters in which the refusal of another product is searched. */
const maxSearched = 100_000;

/** A request says more than the log lines next to it. */
function readKnown(text: string, entry: EntryChoice): Input {
  const { logged, rest } = splitLogLines(
    text
      .replace(/^\ufeff/, '')
      .replace(terminalCodes, '')
      .trim(),
  );
  if (logged === undefined) return readRequest(rest, entry);
  if (!anyToken.test(rest)) return logged;
  const read = readRequest(rest.trim(), entry);
  const note = `the request, and not the log lines next to it (${logged.count})`;
  return 'headers' in read ? { ...read, repairs: [...(read.repairs ?? []), { id: 'taken', note }] } : read;
}

function readRequest(trimmed: string, entry: EntryChoice): Input {
  if (trimmed === '') return emptyInput;
  const file = insertVariables(trimmed);
  if (file !== undefined) return readRequest(file, entry);
  if (/^authorization(?:%3a|:(?:%20|\+))/i.test(trimmed)) {
    const decoded = decodePercent(trimmed.replaceAll('+', '%20'));
    const read = decoded === undefined ? emptyInput : readKnown(decoded, undefined);
    return 'headers' in read ? { ...read, repairs: [decodedPercent, ...(read.repairs ?? [])] } : read;
  }
  if (trimmed.startsWith('{')) return readJson(trimmed, entry);
  const entries: unknown = trimmed.startsWith('[') ? attempt(JSON.parse, trimmed) : undefined;
  if (Array.isArray(entries)) {
    // Logs of a cloud have the newest entry first or last.
    const found = entries.map((each) => findLogged(each)).filter((each) => each !== undefined);
    const fields = found.toSorted((one, other) => (String(one['time']) < String(other['time']) ? -1 : 1)).at(-1);
    if (fields !== undefined) return { kind: 'log-line', fields, count: found.length };
    return unread('The input is a JSON array. Pipe in one HAR, one log line, or several lines of the log.');
  }
  if (notText.test(trimmed)) return unread('The input is binary. Export a HAR, or copy the request as text.');
  // `portcullis token --dpop` prints a token and a proof before the command.
  const command = trimmed.replace(tokenLines, '');
  const traced = readTrace(trimmed);
  if (traced === undefined && /^(?:[$>#%] ?)?curl(?:\.exe)?\s/.test(command)) return readCurls(command);
  if (cmdQuotes.test(command))
    return unread('cmd.exe has no single quotation marks: write "Authorization: Bearer <token>".');
  const plain = traced ?? joinNames(trimmed);
  if (isRawRequest(plain)) {
    const [request = '', ...responses] = plain.split(/\r?\n(?=HTTP\/\d)/);
    const answer = traced === undefined ? responses.at(-1) : findTracedResponse(trimmed);
    const read = readRawRequest(request, schemeOfTrace(traced === undefined ? `> ${request}` : trimmed));
    return answer === undefined || !('headers' in read) ? read : { ...read, response: readResponse(answer) };
  }
  // The response of a token endpoint has a token.
  const isOfTokens = /^HTTP\/\S+ 2/.test(plain) && anyToken.test(plain);
  if (isResponse(plain) && !isOfTokens) return readResponse(plain);
  const [, scheme = '', broken = ''] = credentialsOnly.exec(plain) ?? [];
  const repaired = /\n[\w-]+:/.test(broken) ? undefined : repairToken(broken, ['line_breaks', 'spaces']);
  if (repaired !== undefined) return describeToken(repaired, scheme);
  if (knownHeader.test(plain) && headerLines.test(plain)) {
    return { kind: 'authorization', headers: readHeaderLines(plain.split(/\r?\n/)) };
  }
  const [, unquoted] = quotedValue.exec(plain) ?? [];
  if (unquoted !== undefined) {
    const repaired = { id: 'quotation_marks', note: 'removed quotation marks around the value' };
    return { kind: 'authorization', headers: [['Authorization', unquoted]], repairs: [repaired] };
  }
  if (bearerValue.test(plain)) return { kind: 'authorization', headers: [['Authorization', plain]] };
  return readAround(plain) ?? describeToken(repairToken(plain) ?? { token: plain });
}

/** Inserts the variables of an .http file, whose lines have the form `@name = value`; `undefined` for other text. */
function insertVariables(text: string): string | undefined {
  const variables = new Map([...text.matchAll(variableLine)].map(([, name = '', value = '']) => [name, value]));
  if (variables.size === 0) return undefined;
  return text
    .replace(variableLine, '')
    .replace(/\{\{\s{0,9}([\w-]{1,100})\s{0,9}\}\}/g, (all, name: string) => variables.get(name) ?? all)
    .trim();
}

function describeToken({ token, repairs }: RepairedToken, scheme = 'Bearer'): Input {
  const headers = [['Authorization', `${scheme} ${token}`]] as const;
  return { kind: 'token', headers, ...(repairs !== undefined && { repairs }) };
}

/** Reads input that may contain a token: a URL, an assignment of a shell, a line of a program. */
function readAround(text: string): Input | undefined {
  const [url = '', fragment = ''] = text.split('#', 2);
  const assigned = assignment.exec(text)?.[1] ?? new URLSearchParams(fragment).get('access_token');
  if (assigned !== null) return describeToken({ token: assigned });
  if (/^https?:\/\/\S+$/i.test(text) && URL.canParse(url)) return { kind: 'curl', method: 'GET', url, headers: [] };
  if ((!/\s/.test(text) && !/["']https?:/.test(text)) || placeholder.test(text) || repairToken(text) !== undefined)
    return undefined;
  if (text.split(/\s+/).every((word) => jwtForm.test(word))) return readOtherText(text);
  // A token with line breaks.
  if (/^["'`]?ey/.test(text)) return undefined;
  return readOtherText(text);
}

/** The request in the output of `curl -v`; `undefined` for other input. */
function readTrace(text: string): string | undefined {
  const lines = (readOffsets(text) ?? text).split(/\r?\n/);
  // After a redirect, or with a nonce, the last request is the one that failed.
  const first = lines.findLastIndex((line) => /^> [A-Z]+ \S+ HTTP\//.test(line));
  if (first < 0 || !(/^[*<>{}] /.test(text) || /^(?:\*|==) /m.test(text))) return undefined;
  const end = lines.findIndex((line, index) => index > first && !line.startsWith('> '));
  const sent = end < 0 ? lines.slice(first) : lines.slice(first, end);
  const head = sent.map((line) => line.slice(2)).join('\n');
  // An empty line before the last one is of a line break at the end of a header.
  return head.replace(/\n\n/g, '\r\r\n');
}

/** The last request of `curl --trace-ascii`, whose lines have offsets and at most 64 characters, in the form of `curl -v`. */
function readOffsets(text: string): string | undefined {
  const block = text.split(/=> Send header[^\n]*\n/).at(-1) ?? '';
  const lines: string[] = [];
  let end = -1;
  for (const [, offset = '', part = ''] of block.matchAll(/^([\da-f]{4,16}): (.*?)\r?$/gm)) {
    const at = Number.parseInt(offset, 16);
    if (at === 0 && lines.length > 0) break;
    if (at === end) lines.push(`${lines.pop()}${part}`);
    else lines.push(`> ${part}`);
    end = at + part.length;
  }
  return block === text ? undefined : lines.join('\n');
}

/** Joins a header and its value, which a browser copies as two lines. */
function joinNames(text: string): string {
  return text.replace(
    /^(authorization|dpop):?[ \t]*\r?\n(?:\r?\n)?[ \t]*(?=(?:bearer|dpop|basic|token|jwt|oauth):? |ey[\w-]+\.)/gim,
    '$1: ',
  );
}

/** The response in the output of `curl -v`, from its status line on. */
function findTracedResponse(text: string): string | undefined {
  const start = text.lastIndexOf('\n< HTTP/');
  return start < 0 ? undefined : text.slice(start + 1).replace(/^[{}] \[.*\]$/gm, '');
}

/** curl uses HTTP/2 only over TLS by default. */
function schemeOfTrace(text: string): 'http' | 'https' {
  return /^\* (?:SSL connection|ALPN|TLS)|^> [A-Z]+ \S+ HTTP\/[23]/m.test(text) ? 'https' : 'http';
}

function readJson(text: string, entry: EntryChoice): Input {
  const value: unknown = attempt(JSON.parse, text);
  if (value === undefined) {
    const repaired = repairToken(text);
    if (repaired !== undefined) return describeToken(repaired);
    if (decodedForm.test(text)) return decodedToken;
    const found = readOtherText(text);
    if (found !== unknownText) return found;
    return unread('The input begins like JSON and is not JSON. Copy the entire HAR, or one entire log line.');
  }
  if (!isJsonObject(value)) return unread('The JSON is neither a HAR nor a log line.');
  const fields = findLogged(value);
  if (fields !== undefined) return { kind: 'log-line', fields, count: 1 };
  if ('log' in value) return readHar(value, entry);
  const request = readJsonRequest(value);
  if (request !== undefined) {
    const note = `a request of the JSON, with its ${request.headers.length} headers`;
    return { ...request, repairs: [{ id: 'taken', note }] };
  }
  const sent = readOtherText(text);
  if ('headers' in sent && sent.kind !== 'token') return sent;
  const { description, ...body } = readResponseBody(value);
  if (description !== undefined || typeof value['error'] === 'string') {
    return { ...body, description: findDescription(text) ?? description };
  }
  if (decodedForm.test(text)) return decodedToken;
  if (sent !== unknownText) return sent;
  return unread('The JSON is neither a HAR nor a log line of a refusal: it has no member log, reason or access_token.');
}
