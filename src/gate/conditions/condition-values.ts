import { randomUUID } from 'node:crypto';
import type { ResourceRequest } from '../../core/http/request.ts';
import { isInexact, isJsonObject, type JsonObject, parseJsonObject } from '../../core/jose/json.ts';
import { readRegistered } from '../../core/token/claims.ts';
import { foldHeaderName } from '../identity/identity-headers.ts';
import { readOfferedToken } from '../match/request-target.ts';
import { addConnectionOptions, findHeaderActions } from '../proxy/headers.ts';

/** A value of JSON as CEL reads it: objects are maps, so that no member has the name of an inherited one. */
type CelValue = null | boolean | string | number | bigint | readonly CelValue[] | ReadonlyMap<string, CelValue>;

const written = new WeakMap<object, ReadonlyMap<string, CelValue>>();

/** Writes claims for CEL, once for each verified token or introspection response. */
export function writeClaims(claims: object, jwt: string): ReadonlyMap<string, CelValue> {
  const known = written.get(claims);
  if (known !== undefined) return known;
  const map = writeObject(markDoubles(jwt) ?? claims);
  written.set(claims, map);
  return map;
}

/** Start of the string that stands for a double. No claim has it. */
let mark = '';
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d[\d.]*(?:e[+-]?\d+)?/gi;

/**
 * Reads the claims of a JWT again if it has a number with a fraction or an exponent, and an integer as its value: `1.0` is a
 * double, and JavaScript does not distinguish it from 1.
 */
function markDoubles(jwt: string): JsonObject | undefined {
  const json = Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString();
  if (!/\d(?:\.0|e)/i.test(json)) return undefined;
  mark ||= randomUUID();
  const marked = json.replace(stringOrNumber, (token) => {
    const isDouble = /^-?\d+[.e]/i.test(token) && Number.isSafeInteger(Number(token)) && !isInexact(token);
    return isDouble ? `"${mark}${token}"` : token;
  });
  const claims = parseJsonObject(Buffer.from(marked));
  return claims && readRegistered(claims);
}

function writeObject(value: object): ReadonlyMap<string, CelValue> {
  return new Map(Object.entries(value).map(([name, each]) => [name, writeValue(each)]));
}

function writeValue(value: unknown): CelValue {
  if (typeof value === 'string')
    return mark !== '' && value.startsWith(mark) ? Number(value.slice(mark.length)) : value;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(writeValue);
  return isJsonObject(value) ? writeObject(value) : (value as CelValue); // JSON has no other value
}

/** Items of the longest list or map within values, and characters of the longest string. */
export interface ConditionSize {
  readonly items: number;
  readonly length: number;
}

/** Returns the larger of each figure. */
export function addSizes(...sizes: readonly ConditionSize[]): ConditionSize {
  return sizes.reduce((a, b) => ({ items: Math.max(a.items, b.items), length: Math.max(a.length, b.length) }));
}

/** Measures a value of JSON or of CEL, with the names of its members. */
export function measure(value: unknown): ConditionSize {
  if (typeof value === 'string') return { items: 0, length: value.length };
  if (typeof value !== 'object' || value === null) return { items: 0, length: 0 };
  const isList = Array.isArray(value);
  const parts: readonly unknown[] = isList ? value : [...(value instanceof Map ? value : Object.entries(value))].flat();
  return addSizes({ items: isList ? parts.length : parts.length / 2, length: 0 }, ...parts.map(measure));
}

/** Headers of authentication: no condition reads them. */
const hidden: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'dpop', 'cookie']);

/** Finds a line that CGI reads as a header which the condition names in another spelling: `X_App` for `x-app`. */
export function findAlias({ headers }: ResourceRequest, words: ReadonlySet<string>): string | undefined {
  for (const [name] of headers.entries?.() ?? []) {
    const [lower, folded] = [name.toLowerCase(), foldHeaderName(name)];
    if (folded !== lower && words.has(folded) && !words.has(lower)) return lower;
  }
  return undefined;
}

/** Reads the headers that the upstream gets from the client; `ours` are the headers that the gate sets. */
export function readHeaders({ headers }: ResourceRequest, ours: readonly string[]): ReadonlyMap<string, string> {
  const lines = [...(headers.entries?.() ?? [])].map(([name, value]) => [name.toLowerCase(), value] as const);
  let named: ReadonlySet<string> | undefined;
  for (const [name, value] of lines) if (name === 'connection') named = addConnectionOptions(named, value);
  const actions = findHeaderActions(ours, 'remove');
  const read = new Map<string, string>();
  for (const [name, value] of lines) {
    if (hidden.has(name) || named?.has(name) === true || actions(name) !== 'pass') continue;
    const before = read.get(name);
    read.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const offered = readOfferedToken(headers);
  if (offered !== undefined) read.set('sec-websocket-protocol', offered.others);
  if (offered?.others === '') read.delete('sec-websocket-protocol');
  return read;
}
