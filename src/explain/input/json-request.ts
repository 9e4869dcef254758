import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { type CallInput, type HeaderLine, type Input, joinHeader, unread } from './input.ts';
import { readResponse } from './response.ts';

/** Levels of a document that are searched. */
const maxDepth = 8;

/** Reads headers: an object of names and values, or a list of objects with name (or key) and value. */
function readHeaders(value: unknown): readonly HeaderLine[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const named = Array.isArray(value)
    ? value.filter(isJsonObject).map(({ name, key = name, value: each }) => [key, each])
    : // Go and Node write a list of values.
      Object.entries(value).flatMap(([name, each]) => [each].flat().map((one: unknown) => [name, one]));
  return named.flatMap(([name, each]): readonly HeaderLine[] => {
    // Pseudo-headers of HTTP/2 (`:path`) repeat the URL.
    const isHeader = typeof name === 'string' && typeof each === 'string' && !name.startsWith(':');
    return isHeader ? [[name, each.replace(/^[ \t]+|[ \t]+$/g, '')]] : [];
  });
}

/** Reads the credentials of Postman, Insomnia and Bruno, which are in other members than the headers. */
function readBearer(auth: JsonObject): readonly HeaderLine[] {
  const { type, mode = type, bearer, token = bearer, prefix, disabled } = auth;
  const value = Array.isArray(token)
    ? token.find((each) => isJsonObject(each) && each['key'] === 'token')?.value
    : isJsonObject(token)
      ? token['token']
      : token;
  // A value with a brace is a variable.
  if (mode !== 'bearer' || disabled === true || typeof value !== 'string' || value.includes('{')) return [];
  return [['Authorization', `${typeof prefix === 'string' && prefix !== '' ? prefix : 'Bearer'} ${value}`]];
}

/** Reads a request: an object with headers, and a method or a URL. `inherited` are the credentials of its collection. */
function readRequestObject(object: JsonObject, inherited?: unknown): CallInput | undefined {
  const { headers, header = headers, method, url, uri = url, status } = object;
  const lines = readHeaders(header);
  const address = isJsonObject(uri) ? uri['raw'] : uri;
  // The error of an HTTP client has the headers of the response, and the URL.
  if (typeof status === 'number' && typeof method !== 'string') return undefined;
  if (lines === undefined || (typeof method !== 'string' && typeof address !== 'string')) return undefined;
  // Postman and Insomnia write credentials here, in other members.
  const { auth = inherited, authentication = auth } = object;
  const isElsewhere = authentication !== undefined && joinHeader(lines, 'authorization') === null;
  const added = isElsewhere && isJsonObject(authentication) ? readBearer(authentication) : [];
  if (isElsewhere && added.length === 0) return undefined;
  return {
    ...{ kind: 'curl', isDocument: true },
    method: typeof method === 'string' ? method.toUpperCase() : 'GET',
    url: typeof address === 'string' && URL.canParse(address) ? address : undefined,
    headers: [...lines, ...added],
  };
}

function findCandidates(value: unknown, inherited?: unknown, depth = 0): readonly CallInput[] {
  if (depth > maxDepth || typeof value !== 'object' || value === null) return [];
  const own = isJsonObject(value) ? readRequestObject(value, inherited) : undefined;
  const auth = (isJsonObject(value) ? value['auth'] : undefined) ?? inherited;
  return [
    ...(own === undefined ? [] : [own]),
    ...Object.values(value).flatMap((each) => findCandidates(each, auth, depth + 1)),
  ];
}

/**
 * Reads the one request in a document of JSON, such as an error of axios or an export: an object with headers, and a method or
 * URL. Its values are exact. `undefined` if there is none, or several differ.
 */
export function readJsonRequest(document: JsonObject): CallInput | undefined {
  const found = findCandidates(document);
  const authorized = found.filter(({ headers }) => joinHeader(headers, 'authorization') !== null);
  const [first, ...others] = authorized.length > 0 ? authorized : found;
  const value = first && joinHeader(first.headers, 'authorization');
  return others.some(({ headers }) => joinHeader(headers, 'authorization') !== value) || others.length > 3
    ? undefined
    : first;
}

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
  const { request, response } = objectOf(entry);
  const call = readRequestObject(objectOf(request));
  if (call === undefined) return undefined;
  const { text: body } = objectOf(objectOf(request)['postData']);
  const { status, headers, content } = objectOf(response);
  const { text = '' } = objectOf(content);
  const lines = (readHeaders(headers) ?? []).map(([name, value]) => `${name}: ${value}`);
  return {
    ...call,
    kind: 'har',
    ...(typeof body === 'string' && { body }),
    ...(typeof status === 'number' && {
      response: readResponse([`HTTP/1.1 ${status}`, ...lines, '', String(text).slice(0, maxBody)].join('\n')),
    }),
  };
}

const objectOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});
