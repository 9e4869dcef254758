import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { type CallInput, type Input, unread } from './input.ts';
import { readHeaders, readRequestObject } from './json-request.ts';
import { readResponse } from './response.ts';

/** Number of an entry, from 1. Default: the first that was refused. */
export type EntryChoice = number | 'all' | undefined;

/** Characters of a response body that are read: a refusal is short. */
const maxBody = 4096;
const refusedStatuses: ReadonlySet<unknown> = new Set([401, 403]);

/** Reads one request of a HAR (HTTP archive): number `entry`, all, or the first that was refused. */
export function readHar({ log }: JsonObject, entry: EntryChoice): Input {
  const entries = isJsonObject(log) ? log['entries'] : undefined;
  if (!Array.isArray(entries)) return unread('The HAR has no list of entries. Export it from the browser again.');
  const calls = entries.map(readEntry);
  const read = calls.filter((call) => call !== undefined);
  if (entry === 'all') return read.length === 0 ? unread('The HAR has no requests.') : { kind: 'calls', calls: read };
  if (entry !== undefined) {
    return calls[entry - 1] ?? unread(`The HAR has ${calls.length} requests. Name one of them: --entry 1.`);
  }
  return (
    read.find(({ response }) => refusedStatuses.has(response?.status)) ??
    unread(`None of the ${calls.length} requests in the HAR has a 401 or 403. Name one: --entry 1.`)
  );
}

function readEntry(entry: unknown): CallInput | undefined {
  if (!isJsonObject(entry) || !isJsonObject(entry['request'])) return undefined;
  const call = readRequestObject(entry['request']);
  if (call === undefined) return undefined;
  const { postData } = entry['request'];
  const response = isJsonObject(entry['response']) ? entry['response'] : {};
  const { status, content } = response;
  const lines = (readHeaders(response['headers']) ?? []).map(([name, value]) => `${name}: ${value}`);
  const body = isJsonObject(content) && typeof content['text'] === 'string' ? content['text'] : '';
  return {
    ...call,
    kind: 'har',
    ...(isJsonObject(postData) && typeof postData['text'] === 'string' && { body: postData['text'] }),
    ...(typeof status === 'number' && {
      response: readResponse([`HTTP/1.1 ${status}`, ...lines, '', body.slice(0, maxBody)].join('\n')),
    }),
  };
}
