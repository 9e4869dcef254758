import { isJsonObject, parseJsonObject } from '../../core/jose/json.ts';
import { readCurls } from './curl.ts';
import { findForeign } from './foreign-texts.ts';
import { type EntryChoice, readHar } from './har.ts';
import { type Input, type UnreadInput, unread } from './input.ts';
import { readJsonRequest } from './json-request.ts';
import { readOtherText, unknownText } from './other-text.ts';
import { isRawRequest, readHeaderLines, readRawRequest } from './raw-request.ts';
import { type RepairedToken, repairToken } from './repair.ts';
import { isResponse, isResponseBody, readResponse, readResponseBody } from './response.ts';
import { readTerminalLines } from './terminal-line.ts';

export interface ReadInputOptions {
  /** Entry of a HAR. */
  readonly entry?: EntryChoice;
}

const bearerValue = /^(?:bearer|dpop|basic|token|jwt|oauth)(?::?\s|:|%20|\+|$)/i;
const placeholder = /^(?:<[^<>\n]*>|\[object \w+\])$/;
const jwtForm = /^ey[\w-]+\.[\w-]+\.[\w-]*$/;
/** `TOKEN=…`, as in a shell, a file of variables, or the fragment of a URL. */
const assignment = /^(?:export +|set +|\$env:)?\w+ ?= ?["']?(ey[\w-]+\.[\w-]+\.[\w-]*)["']?(?:;|&\S*)?$/;
/** The header or the claims of a token, as decoders show them. */
const decodedForm = /"(?:alg|iss|aud)"\s*:/;
const decodedToken = unread('This is a decoded token. Pipe in the encoded one: three parts, with dots between them.');
/** Control characters of binary data, and replacements of bytes that are not UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches control characters
const notText = /[\x00-\x08\x0e-\x1a\x1c-\x1f]|\ufffd{2}/;
const tokenLines = /^(?:ey[\w-]+\.[\w-]+\.[\w-]+\r?\n+)+(?=curl\s)/;
/** A header, or its value, with nothing but credentials. */
const credentialsOnly = /^(?:authorization: *)?(bearer|dpop) +(ey[\s\S]+)$/i;
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
export function readInput(text: string, options: ReadInputOptions = {}): Input {
  const input = readKnown(text, options);
  const isCall = 'calls' in input || 'fields' in input || ('headers' in input && anyToken.test(text));
  const foreign = isCall ? undefined : findForeign(text.slice(0, maxSearched));
  if (foreign === undefined) return input;
  return input.kind === 'response' ? { ...input, foreign } : readResponse(text.slice(0, maxSearched));
}

const anyToken = /ey[\w-]+\.[\w-]+\./;
/** Characters in which the refusal of another product is searched. */
const maxSearched = 100_000;

function readKnown(text: string, { entry }: ReadInputOptions): Input {
  const trimmed = text.replace(/^\ufeff/, '').trim();
  if (trimmed === '') return emptyInput;
  if (trimmed.startsWith('{')) return readJson(trimmed, entry);
  if (isList(trimmed)) {
    return unread('The input is a JSON array. Pipe in one HAR, one log line, or several lines of the log.');
  }
  if (notText.test(trimmed)) return unread('The input is binary. Export a HAR, or copy the request as text.');
  // `portcullis token --dpop` prints a token and a proof before the command.
  const command = trimmed.replace(tokenLines, '');
  if (/^(?:[$>#%] ?)?curl(?:\.exe)?\s/.test(command)) return readCurls(command);
  const logged = readPrefixedLines(trimmed) ?? readTerminalLines(trimmed);
  if (logged !== undefined) return logged;
  const traced = readTrace(trimmed);
  const plain = traced ?? joinNames(trimmed);
  if (isRawRequest(plain)) {
    const [request = '', ...responses] = plain.split(/\r?\n(?=HTTP\/\d)/);
    const answer = traced === undefined ? responses.at(-1) : findTracedResponse(trimmed);
    const read = readRawRequest(request, traced === undefined ? 'http' : schemeOfTrace(trimmed));
    return answer === undefined || !('headers' in read) ? read : { ...read, response: readResponse(answer) };
  }
  // The response of a token endpoint has a token.
  const isOfTokens = /^HTTP\/\S+ 2/.test(plain) && anyToken.test(plain);
  if (isResponse(plain) && !isOfTokens) return readResponse(plain);
  const [, scheme = '', broken = ''] = credentialsOnly.exec(plain) ?? [];
  const repaired = /\n[\w-]+:/.test(broken) ? undefined : repairToken(broken, ['line_breaks']);
  if (repaired !== undefined) return describeToken(repaired, scheme);
  if (knownHeader.test(plain) && headerLines.test(plain)) {
    return { kind: 'authorization', headers: readHeaderLines(plain.split(/\r?\n/)) };
  }
  if (bearerValue.test(plain)) return { kind: 'authorization', headers: [['Authorization', plain]] };
  return readAround(plain) ?? describeToken(repairToken(plain) ?? { token: plain });
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

function isList(text: string): boolean {
  if (!text.startsWith('[')) return false;
  try {
    return Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
}

/** The request in the output of `curl -v`; `undefined` for other input. */
function readTrace(text: string): string | undefined {
  const lines = text.split(/\r?\n/);
  // After a redirect, or with a nonce, the last request is the one that failed.
  const first = lines.findLastIndex((line) => /^> [A-Z]+ \S+ HTTP\//.test(line));
  if (first < 0 || !/^[*<>{}] /.test(text)) return undefined;
  const end = lines.findIndex((line, index) => index > first && !line.startsWith('> '));
  return lines
    .slice(first, end < 0 ? lines.length : end)
    .map((line) => line.slice(2))
    .join('\n');
}

/** Joins a header and its value, which a browser copies as two lines. */
function joinNames(text: string): string {
  return text.replace(/^(authorization|dpop):?[ \t]*\r?\n[ \t]*(?=(?:bearer|dpop) |ey[\w-]+\.)/gim, '$1: ');
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
  // The last line of a log is the newest.
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const fields = lines.length > 1 && lines.every((line) => line.startsWith('{')) ? readLastRefusal(lines) : undefined;
  if (fields !== undefined) return { kind: 'log-line', fields };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const repaired = repairToken(text);
    if (repaired !== undefined) return describeToken(repaired);
    if (decodedForm.test(text)) return decodedToken;
    const found = readOtherText(text);
    if (found !== unknownText) return found;
    return unread('The input begins like JSON and is not JSON. Copy the entire HAR, or one entire log line.');
  }
  if (!isJsonObject(value)) return unread('The JSON is neither a HAR nor a log line.');
  const logged = findLogged(value);
  if (logged !== undefined) return { kind: 'log-line', fields: logged };
  if ('log' in value) return readHar(value, entry);
  const request = readJsonRequest(value);
  if (request !== undefined) {
    const note = `a request of the JSON, with its ${request.headers.length} headers`;
    return { ...request, repairs: [{ id: 'taken', note }] };
  }
  const sent = readOtherText(text);
  if ('headers' in sent && sent.kind !== 'token') return sent;
  if (isResponseBody(value)) return readResponseBody(value);
  if (decodedForm.test(text)) return decodedToken;
  if (sent !== unknownText) return sent;
  return unread('The JSON is neither a HAR nor a log line of a refusal: it has no member log, reason or access_token.');
}

/** Levels of JSON around a log line, such as of Docker, CloudWatch or a cloud's log explorer. */
const maxWrappers = 4;

/** Finds the log line of a refusal in an object: itself, or a member that is an object or JSON. */
function findLogged(value: unknown, depth = 0): Readonly<Record<string, unknown>> | undefined {
  const object = typeof value === 'string' && value.startsWith('{') ? parseJsonObject(Buffer.from(value)) : value;
  if (!isJsonObject(object) || depth > maxWrappers) return undefined;
  if (hasReason(object)) return object;
  for (const member of Object.values(object)) {
    const found = findLogged(member, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Log lines after a prefix of Docker, journald and others. */
function readPrefixedLines(text: string): Input | undefined {
  const lines = text.split(/\r?\n/).flatMap((line) => /^[^{]{1,200}(\{"time":.*\})\s*$/.exec(line)?.[1] ?? []);
  const fields = readLastRefusal(lines);
  return fields === undefined ? undefined : { kind: 'log-line', fields };
}

function readLastRefusal(lines: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  return lines.map((line) => findLogged(line)).findLast((fields) => fields !== undefined);
}

/** Reports whether a log line is of a refusal, or of one that report mode prevented. */
function hasReason(fields: Readonly<Record<string, unknown>>): boolean {
  return [fields['reason'], fields['would_refuse']].some((reason) => typeof reason === 'string');
}
