import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { type CallInput, type HeaderLine, type Input, joinHeader, unread } from './input.ts';

/** Number of an entry, from 1. Default: the first that was refused. */
export type EntryChoice = number | 'all' | undefined;

const maxDepth = 20;
const refusedStatuses: ReadonlySet<unknown> = new Set([401, 403]);

/**
 * Reads one request of a HAR (HTTP archive), a collection of Postman or an export of Insomnia: number `entry`, all, or the
 * first that was refused, or has an Authorization. Variables stay unchanged. `undefined` for another document.
 */
export function readCollection(document: JsonObject, entry: EntryChoice): Input | undefined {
  const { log, info, item, resources } = document;
  if ('log' in document) {
    const entries = isJsonObject(log) ? log['entries'] : undefined;
    if (!Array.isArray(entries)) return unread('The HAR has no list of entries. Export it from the browser again.');
    const isRefused = (call: CallInput): boolean => refusedStatuses.has(call.response?.status);
    return choose('HAR', entries.map(readEntry), { entry, isWanted: isRefused, wanted: 'a 401 or 403' });
  }
  const isWanted = ({ headers }: CallInput): boolean => joinHeader(headers, 'authorization') !== null;
  const choice: Choice = { entry, isWanted, wanted: 'an Authorization' };
  if (isJsonObject(info) && Array.isArray(item)) return choose('collection', readItems(document, undefined, 0), choice);
  if (!Array.isArray(resources)) return undefined;
  const requests = listOf(resources).filter(({ url, method }) => typeof url === 'string' && typeof method === 'string');
  return choose('export', requests.map(readResource), choice);
}

interface Choice {
  readonly entry: EntryChoice;
  readonly isWanted: (call: CallInput) => boolean;
  readonly wanted: string;
}

function choose(what: string, calls: readonly (CallInput | undefined)[], { entry, isWanted, wanted }: Choice): Input {
  const read = calls.filter((call) => call !== undefined);
  if (entry === 'all')
    return read.length === 0 ? unread(`The ${what} has no requests.`) : { kind: 'calls', calls: read };
  if (entry !== undefined) {
    return calls[entry - 1] ?? unread(`The ${what} has ${calls.length} requests. Name one of them: --entry 1.`);
  }
  return (
    read.find(isWanted) ??
    unread(`None of the ${calls.length} requests in the ${what} has ${wanted}. Name one: --entry 1.`)
  );
}

function readEntry(entry: unknown): CallInput | undefined {
  if (!isJsonObject(entry) || !isJsonObject(entry['request'])) return undefined;
  const { method, url, headers, postData } = entry['request'];
  if (typeof method !== 'string' || typeof url !== 'string') return undefined;
  const response = isJsonObject(entry['response']) ? entry['response'] : {};
  const { status } = response;
  return {
    kind: 'har',
    method,
    url,
    headers: readNamed(headers),
    ...(isJsonObject(postData) && typeof postData['text'] === 'string' && { body: postData['text'] }),
    ...(typeof status === 'number' && { response: { status, headers: readNamed(response['headers']) } }),
  };
}

/** `inherited`: authorization of the parent folder. */
function readItems({ item, auth }: JsonObject, inherited: unknown, depth: number): readonly CallInput[] {
  const own = auth ?? inherited;
  if (depth > maxDepth) return [];
  return listOf(item).flatMap((each): readonly CallInput[] => {
    const { request } = each;
    if (Array.isArray(each['item'])) return readItems(each, own, depth + 1);
    return isJsonObject(request) ? [readItem(request, own)] : [];
  });
}

function readItem({ method, url, header, auth }: JsonObject, inherited: unknown): CallInput {
  const own = listOf(header).flatMap(({ key, value, disabled }) =>
    typeof key === 'string' && typeof value === 'string' && disabled !== true ? [[key, value] as const] : [],
  );
  return describeCall(method, isJsonObject(url) ? url['raw'] : url, [...own, ...readAuth(auth ?? inherited)]);
}

function readAuth(auth: unknown): readonly HeaderLine[] {
  const { type, bearer, oauth2 } = isJsonObject(auth) ? auth : {};
  if (type === 'basic') return [['Authorization', 'Basic']];
  const [members, name] = type === 'oauth2' ? [oauth2, 'accessToken'] : [type === 'bearer' ? bearer : [], 'token'];
  const token = listOf(members).find(({ key }) => key === name)?.['value'];
  return typeof token === 'string' ? [['Authorization', `Bearer ${token}`]] : [];
}

function readResource({ method, url, headers, authentication }: JsonObject): CallInput {
  const { type, token, prefix } = isJsonObject(authentication) ? authentication : {};
  const own = readNamed(headers);
  const scheme = typeof prefix === 'string' && prefix !== '' ? prefix : 'Bearer';
  const hasToken = type === 'bearer' && typeof token === 'string';
  return describeCall(method, url, hasToken ? [...own, ['Authorization', `${scheme} ${token}`]] : own);
}

function describeCall(method: unknown, url: unknown, headers: readonly HeaderLine[]): CallInput {
  return {
    kind: 'har',
    method: typeof method === 'string' ? method : 'GET',
    url: typeof url === 'string' && URL.canParse(url) ? url : undefined,
    headers,
  };
}

/** Pseudo-headers of HTTP/2 (`:path`) repeat the URL. */
function readNamed(headers: unknown): readonly HeaderLine[] {
  return listOf(headers).flatMap(({ name, value }) =>
    typeof name === 'string' && typeof value === 'string' && !name.startsWith(':') ? [[name, value] as const] : [],
  );
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
