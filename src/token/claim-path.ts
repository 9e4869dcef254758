import { isJsonObject, type JsonObject } from '../jose/json.ts';

/** Where a claim is: its name, or the names on the way to it from the outside in. */
export type ClaimPath = string | readonly string[];

/** The value of a claim; `undefined` if it is not there. What an object inherits is no claim. */
export function findClaim(claims: JsonObject, path: ClaimPath): unknown {
  if (typeof path === 'string') return Object.hasOwn(claims, path) ? claims[path] : undefined;
  let value: unknown = claims;
  for (const name of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}
