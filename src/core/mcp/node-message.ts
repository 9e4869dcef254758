import type { IncomingMessage } from 'node:http';
import type { Refusal } from '../refusal/refusal.ts';
import { Refused } from '../refused.ts';
import { collectBody, type HeldBody } from './held-body.ts';
import { announcesJson, type McpMessages, maxMessageBytes, parseMessages, readMessages } from './messages.ts';
import { findBypass, matchesHeaders } from './operation-headers.ts';
import { carriesMessage, type ReadMessage, readOperations } from './operations.ts';

/** A request of `node:http`, with the body that a parser has set, if any. */
export type McpIncoming = IncomingMessage & { body?: unknown };

/** Reading for a proxy, which forwards the bytes unchanged and releases them. */
export interface ForwardedReading {
  readonly maxMilliseconds: number;
  /** Called before the first byte is read. */
  onBegin(): void;
}

/** Reads the message of a request. Sets `body` if no parser did, for the server; a proxy gets the bytes in `held` instead. */
export async function readNodeMessage(
  incoming: McpIncoming,
  held: HeldBody,
  forwarded?: ForwardedReading,
): Promise<ReadMessage> {
  const decided = readHead(incoming);
  if (decided !== undefined) return decided;
  const { body, rawHeaders } = incoming;
  return interpret(body === undefined ? await readBody(incoming, held, forwarded) : parsed(body), rawHeaders);
}

/** The part of a message before its body. */
interface MessageHead {
  readonly method?: string | undefined;
  /** Names and values of the headers, alternately. */
  readonly rawHeaders: readonly string[];
}

/** Reads the message of a request that was copied with its complete body, for an explanation. */
export function readCopiedMessage(copied: MessageHead & { readonly body: string }): ReadMessage {
  const { body, rawHeaders } = copied;
  const isTooLarge = Buffer.byteLength(body) > maxMessageBytes;
  return readHead(copied) ?? interpret(isTooLarge ? new Refused('message_too_large') : parsed(body), rawHeaders);
}

/** Decides by method and headers; `undefined` if the body has to be read. */
function readHead({ method, rawHeaders }: MessageHead): ReadMessage | undefined {
  const read = (name: string): readonly string[] => linesOf(rawHeaders, name);
  const bypass = findBypass((name) => (read(name).length === 0 ? null : read(name).join()));
  if (bypass !== undefined) return refuse(bypass);
  const hasBody = read('transfer-encoding').length > 0 || read('content-length').some((length) => Number(length) !== 0);
  if (hasBody && method !== 'POST') return refuse(new Refused('malformed_message'));
  if (!carriesMessage(method)) return { operations: [], id: null };
  const [type, encoding] = [read('content-type'), read('content-encoding')];
  const isJson = type.length === 1 && announcesJson(type[0] ?? null, encoding[0] ?? null);
  return isJson ? undefined : refuse(new Refused('malformed_message'));
}

function interpret(read: McpMessages | Refused | undefined, rawHeaders: readonly string[]): ReadMessage {
  if (read === undefined || read instanceof Refused) return refuse(read ?? new Refused('malformed_message'));
  const id = readId(read);
  const headers = { method: linesOf(rawHeaders, 'mcp-method'), name: linesOf(rawHeaders, 'mcp-name') };
  if (!matchesHeaders(read, headers)) return { operations: new Refused('mcp_header_mismatch'), id };
  const operations = read.list.flatMap(readOperations);
  // Encoders write a lone surrogate as they like.
  const isReadable = operations.every(({ name = '' }) => !loneSurrogate.test(name));
  return isReadable ? { operations, id } : refuse(new Refused('malformed_message'));
}

const loneSurrogate = /\p{Surrogate}/u;

function refuse(operations: Refused): ReadMessage {
  return { operations, id: null };
}

function readId({ list, isBatch }: McpMessages): string | number | null {
  const id = isBatch ? undefined : list[0]?.['id'];
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

/** A body that a parser has set: bytes or a string of a parser that does not read JSON, otherwise the parsed value. */
function parsed(body: unknown): McpMessages | undefined {
  if (body instanceof Uint8Array) return parseMessages(body);
  return typeof body === 'string' ? parseMessages(Buffer.from(body)) : readMessages(body);
}

async function readBody(
  incoming: McpIncoming,
  held: HeldBody,
  forwarded: ForwardedReading | undefined,
): Promise<McpMessages | Refused | undefined> {
  if (Number(incoming.headers['content-length']) > maxMessageBytes) return new Refused('message_too_large');
  forwarded?.onBegin();
  const bytes = await collectBody(incoming, held, forwarded?.maxMilliseconds);
  if (forwarded === undefined) held.release();
  else incoming.pause();
  if (bytes === undefined || bytes instanceof Refused) return bytes;
  const messages = parseMessages(bytes);
  // Parsed again: the checked value is frozen, and servers may change theirs.
  if (messages !== undefined && forwarded === undefined) incoming.body = JSON.parse(bytes.toString('utf8'));
  return messages;
}

/** Finds the lines of a header in every spelling: CGI reads `Mcp_Name` as `Mcp-Name`. */
function linesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  const found: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] ?? '';
    const isSpelling = each.length === name.length && each.toLowerCase().replace(/[^a-z\d]/g, '-') === name;
    if (isSpelling) found.push(rawHeaders[i + 1] ?? '');
  }
  return found;
}

const headerMismatch = -32_020;

/** Returns the refusal with an error of JSON-RPC if the headers differ from the body; every other refusal stays unchanged. */
export function describeMismatch(refusal: Refusal, message: ReadMessage | undefined): Refusal {
  if (refusal.reason !== 'mcp_header_mismatch') return refusal;
  const error = { code: headerMismatch, message: 'Header mismatch' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: message?.id ?? null, error });
  return { ...refusal, headers: { ...refusal.headers, 'content-type': 'application/json' }, body };
}
