import type { JsonObject } from '../jose/json.ts';
import type { McpMessages } from './messages.ts';
import { findNamedMember, readMember } from './operations.ts';

/** Values of the two headers that repeat the operation, one for each time that the request has them. */
export interface OperationHeaders {
  /** `Mcp-Method`. */
  readonly method: readonly string[];
  /** `Mcp-Name`. */
  readonly name: readonly string[];
}

const encodedGrammar = /^=\?base64\?([A-Za-z\d+/]*={0,2})\?=$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reports whether the headers, if present, repeat what the body states. */
export function matchesHeaders({ list, isBatch }: McpMessages, { method, name }: OperationHeaders): boolean {
  if (method.length + name.length === 0) return true;
  const [message] = list;
  if (isBatch || message === undefined || method.length > 1 || name.length > 1) return false;
  return (method.length === 0 || method[0] === message['method']) && matchesName(message, name[0]);
}

function matchesName({ method, params }: JsonObject, value: string | undefined): boolean {
  const member = findNamedMember(method);
  if (value === undefined || member === undefined) return true;
  const name = decodeHeaderName(value);
  return name !== undefined && name === readMember(params, member);
}

/** Decodes a value of `Mcp-Name`. Returns `undefined` for an encoded value that is not canonical base64 of UTF-8. */
export function decodeHeaderName(value: string): string | undefined {
  if (!value.startsWith('=?')) return value;
  const encoded = encodedGrammar.exec(value)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
