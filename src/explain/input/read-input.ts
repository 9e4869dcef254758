import { isJsonObject, parseJsonObject } from '../../jose/json.ts';
import { readCurl } from './curl.ts';
import { isFetchCall, readFetchCall } from './fetch-call.ts';
import { readHar } from './har.ts';
import { isHttpie, readHttpie } from './httpie.ts';
import { type Input, unread } from './input.ts';
import { isPostman, readPostman } from './postman.ts';
import { isPowerShell, readPowerShell } from './powershell.ts';
import { isRawRequest, readHeaderLines, readRawRequest } from './raw-request.ts';
import { readTerminalLines } from './terminal-line.ts';

/** What to look for in the text. */
export interface ReadInputOptions {
  /** Number of the entry of a HAR, from 1. Default: the first that was refused. */
  readonly entry?: number | undefined;
}

const bearerValue = /^(?:bearer|dpop|basic|token|jwt)(?::? |:|$)/i;
/** What stands in the place of a token, with spaces in it. */
const placeholder = /^(?:<[^<>\n]*>|\[object \w+\])$/;
const jwtForm = /^ey[\w-]+\.[\w-]+\.[\w-]*$/;
/** `TOKEN=…`, as in a shell, a file of variables, or the fragment of a URL. */
const assignment = /^(?:export +|set +|\$env:)?\w+ ?= ?["']?(ey[\w-]+\.[\w-]+\.[\w-]*)["']?(?:;|&\S*)?$/;
/** In a line of a program. */
const credentialForm = /\b(bearer|dpop) +(ey[\w-]+\.[\w-]+\.[\w-]*)/gi;
/** Control characters that no text has, and what stands for bytes that are no UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const notText = /[\x00-\x08\x0e-\x1a\x1c-\x1f]|\ufffd{2}/;
const headerStart = /^(?:[<>*] )?(?:authorization|dpop|cookie)\s*:/i;

/**
 * Tells by its first characters what a text is, and reads it: a command or a call that a browser copies, a HAR, a
 * collection of Postman, a log line, an HTTP request, header lines, the value of an Authorization header. Any other word is
 * taken for a token.
 */
export function readInput(text: string, { entry }: ReadInputOptions = {}): Input {
  const trimmed = text.replace(/^\ufeff/, '').trim();
  if (trimmed === '')
    return unread('The input is empty. Pipe in a token, a curl command, a HAR, a request or a log line.');
  if (trimmed.startsWith('{')) return readJson(trimmed, entry);
  if (isList(trimmed)) {
    return unread(
      'A list is nothing that is known here: pipe in one HAR, one log line, or log lines one below the other.',
    );
  }
  if (notText.test(trimmed)) return unread('The input is not text. Export a HAR, or copy the call as text.');
  if (/^(?:[$>#%] ?)?curl(?:\.exe)?\s/.test(trimmed)) return readCurl(trimmed.replace(/^[$>#%] ?/, ''));
  if (isFetchCall(trimmed)) return readFetchCall(trimmed);
  if (isPowerShell(trimmed)) return readPowerShell(trimmed);
  if (isHttpie(trimmed)) return readHttpie(trimmed);
  const prefixed = readPrefixedLines(trimmed);
  if (prefixed !== undefined) return prefixed;
  const logged = readTerminalLines(trimmed);
  if (logged !== undefined) return logged;
  const traced = readTrace(trimmed);
  const plain = traced ?? trimmed;
  if (isRawRequest(plain)) return readRawRequest(plain, traced === undefined ? 'http' : schemeOfTrace(trimmed));
  if (/^HTTP\/\d/.test(plain)) {
    return unread('This is what a server answered. Paste the call too: curl -v prints both.');
  }
  if (headerStart.test(plain)) {
    return { kind: 'authorization', method: undefined, url: undefined, headers: readHeaderLines(plain.split(/\r?\n/)) };
  }
  if (!bearerValue.test(plain)) {
    const found = readAround(plain);
    if (found !== undefined) return found;
  }
  const value = bearerValue.test(plain) ? plain : `Bearer ${plain}`;
  return {
    kind: value === plain ? 'authorization' : 'token',
    method: undefined,
    url: undefined,
    headers: [['Authorization', value]],
  };
}

/** What is no token by itself, and may have one in it: a URL, an assignment of a shell, a line of a program. */
function readAround(text: string): Input | undefined {
  const none = { method: undefined, url: undefined };
  if (/^https?:\/\/\S+$/i.test(text) && URL.canParse(text))
    return { kind: 'curl', method: 'GET', url: text, headers: [] };
  const [, assigned] = assignment.exec(text) ?? [];
  if (assigned !== undefined) return { kind: 'token', ...none, headers: [['Authorization', `Bearer ${assigned}`]] };
  if (!/\s/.test(text) || placeholder.test(text)) return undefined;
  if (text.split(/\s+/).every((word) => jwtForm.test(word)))
    return unread('The input has several tokens. Pipe in one at a time.');
  // A token that was broken into lines stays one.
  if (/^["'`]?ey/.test(text)) return undefined;
  const credentials = new Set([...text.matchAll(credentialForm)].map(([, scheme, token]) => `${scheme} ${token}`));
  const [first] = credentials;
  if (first !== undefined && credentials.size === 1)
    return { kind: 'authorization', ...none, headers: [['Authorization', first]] };
  return unread(
    'The input is no token, and nothing else that is known here: pipe in a token, a curl command, a HAR, a request or a log line.',
  );
}

function isList(text: string): boolean {
  if (!text.startsWith('[')) return false;
  try {
    return Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
}

/** The request in what `curl -v` prints; `undefined` if this is nothing of it. */
function readTrace(text: string): string | undefined {
  const lines = text.split(/\r?\n/);
  const first = lines.findIndex((line) => /^> [A-Z]+ \S+ HTTP\//.test(line));
  if (first < 0 || !/^[*<>{}] /.test(text)) return undefined;
  const end = lines.findIndex((line, index) => index > first && !line.startsWith('> '));
  return lines
    .slice(first, end < 0 ? lines.length : end)
    .map((line) => line.slice(2))
    .join('\n');
}

/** curl speaks HTTP/2 only over TLS, unless it is told otherwise. */
function schemeOfTrace(text: string): 'http' | 'https' {
  return /^\* (?:SSL connection|ALPN|TLS)|^> [A-Z]+ \S+ HTTP\/[23]/m.test(text) ? 'https' : 'http';
}

function readJson(text: string, entry: number | undefined): Input {
  // A log may hold many lines: the last of them is the one that was just written.
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const fields = lines.length > 1 && lines.every((line) => line.startsWith('{')) ? readLastRefusal(lines) : undefined;
  if (fields !== undefined) return { kind: 'log-line', fields };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return unread('The input begins as JSON and is not JSON. Copy the whole HAR, or one whole log line.');
  }
  if (!isJsonObject(value)) return unread('The JSON is neither a HAR nor a log line.');
  if ('log' in value) return readHar(value, entry);
  if (isPostman(value)) return readPostman(value, entry);
  // The answer of a token endpoint (RFC 6749 §5.1).
  const { access_token: granted, accessToken = granted, token = accessToken } = value;
  if (typeof token === 'string') {
    return { kind: 'token', method: undefined, url: undefined, headers: [['Authorization', `Bearer ${token}`]] };
  }
  if (hasReason(value)) return { kind: 'log-line', fields: value };
  return unread(
    'The JSON is neither a HAR nor the log line of a refused call: it has no member log, no reason and no access_token.',
  );
}

/** Log lines behind what Docker, journald and others write in front of each. */
function readPrefixedLines(text: string): Input | undefined {
  const lines = text.split(/\r?\n/).flatMap((line) => /^[^{]{1,200}(\{"time":.*\})\s*$/.exec(line)?.[1] ?? []);
  const fields = readLastRefusal(lines);
  return fields === undefined ? undefined : { kind: 'log-line', fields };
}

function readLastRefusal(lines: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  return lines
    .map((line) => parseJsonObject(Buffer.from(line)))
    .findLast((fields) => fields !== undefined && hasReason(fields));
}

/** Of a call that was refused, or would have been by a rule that only reports. */
function hasReason(fields: Readonly<Record<string, unknown>>): boolean {
  return [fields['reason'], fields['would_refuse']].some((reason) => typeof reason === 'string');
}
