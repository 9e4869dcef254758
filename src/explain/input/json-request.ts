import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { type CallInput, type HeaderLine, joinHeader } from './input.ts';

/** Levels of a document that are searched. */
const maxDepth = 8;

/** Reads headers: an object of names and values, or a list of objects with name (or key) and value. */
export function readHeaders(value: unknown): readonly HeaderLine[] | undefined {
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

/** Reads a request: an object with headers, and a method or a URL. */
export function readRequestObject(object: JsonObject): CallInput | undefined {
  const { headers, header = headers, method, url, uri = url, status } = object;
  const lines = readHeaders(header);
  const address = isJsonObject(uri) ? uri['raw'] : uri;
  // The error of an HTTP client has the headers of the response, and the URL.
  if (typeof status === 'number' && typeof method !== 'string') return undefined;
  if (lines === undefined || (typeof method !== 'string' && typeof address !== 'string')) return undefined;
  // Postman and Insomnia write credentials here, in other members.
  const isElsewhere = 'auth' in object || 'authentication' in object;
  if (isElsewhere && joinHeader(lines, 'authorization') === null) return undefined;
  return {
    ...{ kind: 'curl', isDocument: true },
    method: typeof method === 'string' ? method.toUpperCase() : 'GET',
    url: typeof address === 'string' && URL.canParse(address) ? address : undefined,
    headers: lines,
  };
}

function findCandidates(value: unknown, depth = 0): readonly CallInput[] {
  if (depth > maxDepth || typeof value !== 'object' || value === null) return [];
  const own = isJsonObject(value) ? readRequestObject(value) : undefined;
  return [
    ...(own === undefined ? [] : [own]),
    ...Object.values(value).flatMap((each) => findCandidates(each, depth + 1)),
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
