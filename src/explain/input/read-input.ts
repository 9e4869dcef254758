import { isJsonObject, parseJsonObject } from '../../jose/json.ts';
import { readCurl } from './curl.ts';
import { readHar } from './har.ts';
import { type Input, unread } from './input.ts';
import { isRawRequest, readHeaderLines, readRawRequest } from './raw-request.ts';

/** What to look for in the text. */
export interface ReadInputOptions {
  /** Number of the entry of a HAR, from 1. Default: the first that was refused. */
  readonly entry?: number | undefined;
}

const bearerValue = /^(?:bearer|dpop|basic|token|jwt)(?::? |:|$)/i;
const headerStart = /^(?:[<>*] )?(?:authorization|dpop|cookie)\s*:/i;

/**
 * Tells by its first characters what a text is, and reads it: a curl command, a HAR, a log line, an HTTP request, header
 * lines, the value of an Authorization header. Everything else is taken for a token.
 */
export function readInput(text: string, { entry }: ReadInputOptions = {}): Input {
  const trimmed = text.replace(/^\ufeff/, '').trim();
  if (trimmed === '') return unread('The input is empty. Paste a token, a curl command, a HAR or a request.');
  if (trimmed.startsWith('{')) return readJson(trimmed, entry);
  if (/^(?:[$>#%] ?)?curl(?:\.exe)?\s/.test(trimmed)) return readCurl(trimmed.replace(/^[$>#%] ?/, ''));
  // `curl -v` marks the lines of the request.
  const plain = /^> /.test(trimmed) ? trimmed.replace(/^> ?/gm, '') : trimmed;
  if (isRawRequest(plain)) return readRawRequest(plain);
  if (headerStart.test(plain)) {
    return { kind: 'authorization', method: undefined, url: undefined, headers: readHeaderLines(plain.split(/\r?\n/)) };
  }
  const value = bearerValue.test(plain) ? plain : `Bearer ${plain}`;
  return {
    kind: value === plain ? 'authorization' : 'token',
    method: undefined,
    url: undefined,
    headers: [['Authorization', value]],
  };
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
  if (typeof value['reason'] === 'string') return { kind: 'log-line', fields: value };
  return unread('The JSON is neither a HAR nor the log line of a refused call: it has no member log and no reason.');
}

function readLastRefusal(lines: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  return lines
    .map((line) => parseJsonObject(Buffer.from(line)))
    .findLast((fields) => typeof fields?.['reason'] === 'string');
}
