import { attempt } from '../attempt.ts';
import type { ResourceRequest } from '../http/request.ts';
import type { JsonObject } from '../jose/json.ts';
import { Refused } from '../refused.ts';
import type { McpMessages } from './messages.ts';
import { findNamedMember, type ReadMessage, readHeaderOperations, readMember } from './operations.ts';

/** First revision of MCP whose servers compare the headers with the body. */
const firstRevision = '2026-07-28';
const revisionForm = /^\d{4}-\d{2}-\d{2}$/;
/** A proxy may join two header lines with a comma, which the method of a message does not contain. */
const methodForm = /^[\w$./-]+$/;
const plainForm = /^[\t -~]*$/;
const encodedGrammar = /^=\?base64\?([A-Za-z\d+/]*={0,2})\?=$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reports whether `Mcp-Method` and `Mcp-Name`, each with a value for every line of the request, repeat what the body states. */
export function matchesHeaders(
  { list, isBatch }: McpMessages,
  { method, name }: Readonly<Record<'method' | 'name', readonly string[]>>,
): boolean {
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

/** Decodes a `Mcp-Name`; `undefined` for base64 that is not canonical, and beyond ASCII, which servers decode differently. */
export function decodeHeaderName(value: string): string | undefined {
  if (!value.startsWith('=?')) return plainForm.test(value) ? value : undefined;
  const encoded = encodedGrammar.exec(value)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded ? attempt(() => utf8.decode(bytes)) : undefined;
}

const decidingHeader = /^(?:content-(?:type|encoding)|authorization|dpop|mcp-.*)$/;

/** Refuses headers that lead past the message: a WebSocket handshake, and a deciding header that a proxy removes. */
export function findBypass(get: ResourceRequest['headers']['get']): Refused | undefined {
  const listed = (name: string): readonly string[] =>
    (get(name) ?? '').split(',').map((each) => each.trim().toLowerCase());
  const isHandshake = listed('upgrade').some((protocol) => /^websocket\b/.test(protocol));
  // A proxy may not pass Upgrade on to the gate.
  if (isHandshake || get('sec-websocket-key') !== null) return new Refused('no_operation_policy');
  const isNamed = listed('connection').some((name) => decidingHeader.test(name));
  return isNamed ? new Refused('malformed_message') : undefined;
}

const trustedMethods: ReadonlySet<string> = new Set(['POST', 'GET', 'DELETE']);

/** Reads the operations of a request from its headers, for an upstream that compares them with the body. */
export function readTrustedHeaders({ method, headers }: ResourceRequest): ReadMessage {
  const refused = trustedMethods.has(method)
    ? findBypass((name) => headers.get(name))
    : new Refused('no_operation_policy');
  return { operations: refused ?? (method === 'POST' ? readTrustedOperations(headers) : []), id: null };
}

/** The trusted headers as CGI and WSGI read them: every character except letters and digits is alike. */
const trustedForm = /^mcp[^a-z\d](?:method|name|protocol[^a-z\d]version)$/i;
const trustedName = /^[a-z-]+$/i;

function readTrustedOperations(headers: ResourceRequest['headers']): ReadMessage['operations'] {
  for (const [name] of headers.entries?.() ?? []) {
    if (trustedForm.test(name) && !trustedName.test(name)) return new Refused('mcp_headers_missing');
  }
  const revision = headers.get('mcp-protocol-version') ?? '';
  const method = headers.get('mcp-method') ?? '';
  if (!revisionForm.test(revision) || revision < firstRevision || !methodForm.test(method)) {
    return new Refused('mcp_headers_missing');
  }
  if (findNamedMember(method) === undefined) return readHeaderOperations(method, null);
  const sent = headers.get('mcp-name') ?? '';
  if (sent === '' || sent.includes(',')) return new Refused('mcp_headers_missing');
  const name = decodeHeaderName(sent);
  return name === undefined ? new Refused('mcp_header_mismatch') : readHeaderOperations(method, name);
}
