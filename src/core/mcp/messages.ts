import { isJsonObject, type JsonObject, parseJsonComposite } from '../jose/json.ts';

export interface McpMessages {
  readonly list: readonly JsonObject[];
  readonly isBatch: boolean;
}

/** Maximum size of a body, in bytes. */
export const maxMessageBytes = 1024 * 1024;
const maxDepth = 100;
/** Members that decide which operation a message is. A parser that ignores case would read another message. */
const decidingMembers: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params']);
const decidingParams: ReadonlySet<string> = new Set(['name', 'uri']);
const jsonType = /^application\/json[\t ]*(?:;[\t ]*charset[\t ]*=[\t ]*(?:utf-8|"utf-8")[\t ]*)?$/i;

/** Reports whether the header fields announce a JSON body that every server decodes alike. */
export function announcesJson(contentType: string | null, contentEncoding: string | null): boolean {
  return contentType !== null && jsonType.test(contentType) && contentEncoding === null;
}

/** Parses a body. Returns `undefined` if it is malformed, or if two parsers could read it differently. */
export function parseMessages(body: Uint8Array): McpMessages | undefined {
  const messages = collectMessages(parseJsonComposite(body, maxDepth));
  return messages?.list.every(hasPlainMembers) === true ? messages : undefined;
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

function isMessage(value: unknown): value is JsonObject {
  return isJsonObject(value) && (!Object.hasOwn(value, 'method') || typeof value['method'] === 'string');
}

function hasPlainMembers(message: JsonObject): boolean {
  const { params } = message;
  return isPlain(message, decidingMembers) && (!isJsonObject(params) || isPlain(params, decidingParams));
}

function isPlain(object: JsonObject, deciding: ReadonlySet<string>): boolean {
  return Object.keys(object).every((name) => deciding.has(name) || !deciding.has(name.toLowerCase()));
}

function isNestedWithin(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((each) => isNestedWithin(each, depth - 1));
}
