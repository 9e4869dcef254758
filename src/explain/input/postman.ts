import { isJsonObject, type JsonObject } from '../../jose/json.ts';
import { type CallInput, type HeaderLine, type Input, joinHeader, unread } from './input.ts';

/** Folders inside folders that are looked into. */
const maxDepth = 20;

/** Whether a document is a collection, as Postman exports it. */
export function isPostman({ info, item }: JsonObject): boolean {
  return isJsonObject(info) && Array.isArray(item);
}

/** Reads one request of a collection: number `entry`, from 1, or the first that has an Authorization. Variables stay as written. */
export function readPostman(collection: JsonObject, entry: number | undefined): Input {
  const calls = readItems(collection, undefined, 0);
  if (entry !== undefined) {
    return calls[entry - 1] ?? unread(`The collection has ${calls.length} requests. Name one of them: --entry 1.`);
  }
  return (
    calls.find(({ headers }) => joinHeader(headers, 'authorization') !== null) ??
    unread(`None of the ${calls.length} requests in the collection has an Authorization. Name one: --entry 1.`)
  );
}

/** `inherited`: what the folder around says of authorization. */
function readItems({ item, auth }: JsonObject, inherited: unknown, depth: number): readonly CallInput[] {
  const own = auth ?? inherited;
  if (!Array.isArray(item) || depth > maxDepth) return [];
  return item.flatMap((each: unknown): readonly CallInput[] => {
    if (!isJsonObject(each)) return [];
    const { request } = each;
    if (Array.isArray(each['item'])) return readItems(each, own, depth + 1);
    return isJsonObject(request) ? [readRequest(request, own)] : [];
  });
}

function readRequest({ method, url, header, auth }: JsonObject, inherited: unknown): CallInput {
  const raw = isJsonObject(url) ? url['raw'] : url;
  return {
    kind: 'har',
    method: typeof method === 'string' ? method : 'GET',
    url: typeof raw === 'string' && URL.canParse(raw) ? raw : undefined,
    headers: [...readHeaders(header), ...readAuth(auth ?? inherited)],
  };
}

function readHeaders(header: unknown): readonly HeaderLine[] {
  return listOf(header).flatMap(({ key, value, disabled }) =>
    typeof key === 'string' && typeof value === 'string' && disabled !== true ? [[key, value] as const] : [],
  );
}

function readAuth(auth: unknown): readonly HeaderLine[] {
  const { type, bearer, oauth2 } = isJsonObject(auth) ? auth : {};
  if (type === 'basic') return [['Authorization', 'Basic']];
  const [members, name] = type === 'oauth2' ? [oauth2, 'accessToken'] : [type === 'bearer' ? bearer : [], 'token'];
  const token = listOf(members).find(({ key }) => key === name)?.['value'];
  return typeof token === 'string' ? [['Authorization', `Bearer ${token}`]] : [];
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
