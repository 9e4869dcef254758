import { isJsonObject, type JsonObject } from '../jose/json.ts';

/** A read-only set: every request with the same token shares it. */
class Scopes extends Set<string> {
  constructor(names: readonly string[]) {
    super();
    for (const name of names) super.add(name);
  }

  override add(): never {
    throw new TypeError('The scopes of an access token cannot be changed.');
  }
  override delete(): never {
    return this.add();
  }
  override clear(): never {
    return this.add();
  }
}

const noScopes = new Scopes([]);

/** Reads the scopes of a verified token. Elements of an array are not split: that would add scopes. */
export function readScopes(claims: JsonObject, scopeClaim: string | undefined): ReadonlySet<string> {
  const value = findClaim(claims, scopeClaim ?? 'scope');
  if (Array.isArray(value)) return new Scopes(value.filter((each) => typeof each === 'string'));
  return parseScope(typeof value === 'string' ? value : undefined);
}

/** The elements of the `scope` claim of a verified token (RFC 6749 §3.3): split on single spaces. */
export function parseScope(scope: string | undefined): ReadonlySet<string> {
  return scope === undefined || scope === '' ? noScopes : new Scopes(scope.split(' '));
}

/** Returns the permissions of a verified token: the strings in its claims of permissions. */
export function readPermissions(claims: JsonObject, path: PermissionsPath): ReadonlySet<string> {
  const value = findPermissions(claims, path);
  return Array.isArray(value) ? new Scopes(value.filter((each) => typeof each === 'string')) : noScopes;
}

/** Name of a claim, or the names on the path to it from the outside in. */
export type ClaimPath = string | readonly string[];

/** Location of permissions: one claim, or several paths whose values are merged. */
export type PermissionsPath = ClaimPath | readonly (readonly string[])[];

export function listPaths(path: PermissionsPath): readonly ClaimPath[] {
  return typeof path === 'object' && typeof path[0] === 'object' ? path : [path as ClaimPath]; // one path has strings only
}

/** The value of one claim, or the elements of several. A string is one permission: many providers write so. */
export function findPermissions(claims: JsonObject, path: PermissionsPath): unknown {
  const paths = listPaths(path);
  const find = (each: ClaimPath): unknown => {
    const value = findClaim(claims, each);
    return typeof value === 'string' ? [value] : value;
  };
  if (paths[0] === path) return find(path as ClaimPath);
  return paths.map(find).flatMap((value) => (Array.isArray(value) ? value : []));
}

/** Returns the value of a claim; `undefined` if it is absent. Inherited properties are ignored. */
export function findClaim(claims: JsonObject, path: ClaimPath): unknown {
  if (typeof path === 'string') return Object.hasOwn(claims, path) ? claims[path] : undefined;
  let value: unknown = claims;
  for (const name of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** Returns the client of a token: `client_id`, or `azp` if that is absent, unless another claim is named. */
export function readClient(claims: JsonObject, named: string | undefined): unknown {
  const { client_id: clientId, azp } = claims;
  return named !== undefined ? findClaim(claims, named) : clientId === undefined ? azp : clientId;
}

/** The party that acts for the subject of a token: the outermost `act` (RFC 8693 §4.1). */
export interface Actor {
  /** Subject of the actor. */
  readonly sub?: string;
  /** Issuer of `sub`. Absent if it is the issuer of the token. */
  readonly iss?: string;
  /** Client of the actor. */
  readonly client_id?: string;
}

/** Returns the outermost actor of a verified token, without other members. */
export function readActor(claims: JsonObject): Actor | undefined {
  const act = findClaim(claims, 'act');
  if (!isJsonObject(act)) return undefined;
  const members = (['sub', 'iss', 'client_id'] as const).filter(
    (name) => Object.hasOwn(act, name) && typeof act[name] === 'string',
  );
  return Object.fromEntries(members.map((name) => [name, act[name]]));
}
