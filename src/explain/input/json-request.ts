import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { type CallInput, type HeaderLine, joinHeader } from './input.ts';

/** Levels of a document that are searched. */
const maxDepth = 8;

/** Reads headers: an object of names and values, or a list of objects with name (or key) and value. */
function readHeaders(value: unknown): readonly HeaderLine[] | undefined {
  if (!Array.isArray(value)) {
    if (!isJsonObject(value)) return undefined;
    // Go and Node write a list of values.
    return Object.entries(value).flatMap(([name, each]): readonly HeaderLine[] =>
      [each].flat().flatMap((text): readonly HeaderLine[] => (typeof text === 'string' ? [[name, text.trim()]] : [])),
    );
  }
  return value
    .filter(isJsonObject)
    .flatMap(({ name, key = name, value: each }): readonly HeaderLine[] =>
      typeof key === 'string' && typeof each === 'string' ? [[key, each.trim()]] : [],
    );
}

function readCandidate(object: JsonObject): CallInput | undefined {
  const { headers, header = headers, method, url, uri = url } = object;
  const lines = readHeaders(header);
  const address = isJsonObject(uri) ? uri['raw'] : uri;
  if (lines === undefined || (typeof method !== 'string' && typeof address !== 'string')) return undefined;
  // Postman and Insomnia write credentials here, in other members.
  const isElsewhere = 'auth' in object || 'authentication' in object;
  if (isElsewhere && joinHeader(lines, 'authorization') === null) return undefined;
  return {
    kind: 'curl',
    method: typeof method === 'string' ? method.toUpperCase() : 'GET',
    url: typeof address === 'string' && URL.canParse(address) ? address : undefined,
    headers: lines,
  };
}

function findCandidates(value: unknown, depth = 0): readonly CallInput[] {
  if (depth > maxDepth || typeof value !== 'object' || value === null) return [];
  const own = isJsonObject(value) ? readCandidate(value) : undefined;
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
