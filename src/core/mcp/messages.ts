import { isJsonObject, type JsonObject, parseJsonComposite } from '../jose/json.ts';

export type McpMessages = { readonly list: readonly JsonObject[]; readonly isBatch: boolean };

export const maxMessageBytes = 1024 * 1024;
const maxDepth = 100;
/** Every member of a message of revision 2026-07-28. A parser that ignores case would read another one as one of these. */
const messageMembers: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
/** Members of `params`, its `notifications` and its `ref` that decide which operation a request is. */
const decidingMembers: ReadonlyMap<string, string> = new Map(
  ['name', 'uri', 'notifications', 'resourceSubscriptions', 'ref'].map((name) => [foldName(name), name]),
);
const beyondAscii = /[^\0-\x7f]/;
const jsonType = /^application\/json[\t ]*(?:;[\t ]*charset[\t ]*=[\t ]*(?:utf-8|"utf-8")[\t ]*)?$/i;

/** Reports whether the header fields announce a JSON body that every server decodes alike. */
export function announcesJson(contentType: string | null, contentEncoding: string | null): boolean {
  return contentType !== null && jsonType.test(contentType) && contentEncoding === null;
}

/** Parses a body. Returns `undefined` if it is malformed, or if two parsers could read it differently. */
export function parseMessages(body: Uint8Array): McpMessages | undefined {
  return collectMessages(parseJsonComposite(body, maxDepth));
}

/** Reads a body that a framework has parsed. Returns `undefined` if it is malformed. */
export function readMessages(value: unknown): McpMessages | undefined {
  return isNestedWithin(value, maxDepth) ? collectMessages(value) : undefined;
}

function collectMessages(value: unknown): McpMessages | undefined {
  const isBatch = Array.isArray(value);
  const list: readonly unknown[] = isBatch ? value : [value];
  if (list.length === 0 || !list.every(isMessage)) return undefined;
  return { list, isBatch };
}

/** Either a request (or a notification) or a response, with the members of one. */
function isMessage(value: unknown): value is JsonObject {
  if (!isJsonObject(value) || !Object.keys(value).every((name) => messageMembers.has(name))) return false;
  const [isRequest, hasParams] = [Object.hasOwn(value, 'method'), Object.hasOwn(value, 'params')];
  const outcomes = ['result', 'error'].filter((name) => Object.hasOwn(value, name)).length;
  if (!isRequest) return outcomes === 1 && !hasParams;
  const { method, params } = value;
  return typeof method === 'string' && outcomes === 0 && (!hasParams || (isJsonObject(params) && isPlain(params)));
}

/** Reports whether every parser finds the same deciding members, also one that ignores case by the rules of Unicode. */
function isPlain(params: JsonObject): boolean {
  const { notifications, ref } = params;
  return [params, notifications, ref].filter(isJsonObject).every((object) =>
    Object.keys(object).every((name) => {
      const deciding = decidingMembers.get(foldName(name)) ?? name;
      // A reader that assigns members to a new object would set its prototype.
      return name === deciding && name !== '__proto__' && !beyondAscii.test(name);
    }),
  );
}

/** Folds case and separators: the Python SDK also reads `resource_subscriptions`. */
function foldName(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, '');
}

function isNestedWithin(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((each) => isNestedWithin(each, depth - 1));
}
