import type { ResourceRequest } from '../../core/http/request.ts';
import { isJsonObject } from '../../core/jose/json.ts';
import { readOfferedToken } from '../match/request-target.ts';
import { addConnectionOptions, findHeaderActions } from '../proxy/headers.ts';

/** A value of JSON as CEL reads it: objects are maps, so that no member has the name of an inherited one. */
type CelValue = null | boolean | string | number | bigint | readonly CelValue[] | ReadonlyMap<string, CelValue>;

const written = new WeakMap<object, ReadonlyMap<string, CelValue>>();

/** Writes claims for CEL, once for each verified token or introspection response. */
export function writeClaims(claims: object): ReadonlyMap<string, CelValue> {
  const known = written.get(claims);
  if (known !== undefined) return known;
  const map = new Map(Object.entries(claims).map(([name, value]) => [name, writeValue(value)]));
  written.set(claims, map);
  return map;
}

function writeValue(value: unknown): CelValue {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(writeValue);
  return isJsonObject(value) ? writeClaims(value) : (value as CelValue); // JSON has no other value
}

/** Returns the number of items of the longest list or map within a value. */
export function countItems(value: unknown): number {
  if (!Array.isArray(value) && !isJsonObject(value)) return 0;
  const items = Object.values(value);
  return items.reduce<number>((most, each) => Math.max(most, countItems(each)), items.length);
}

/** Headers of authentication: no condition reads them. */
const hidden: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'dpop', 'cookie']);

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
