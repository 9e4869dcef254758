import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../jose/json.ts';
import { findClaim } from './claim-path.ts';

/** A set that stays as it was made: it is shared by every request with the same token. */
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
/** An issuer writes few texts, and many tokens with each. */
const keptScopes = 1000;
/** A set takes some 64 bytes for each scope, and a scope may be one character long. */
const keptCharacters = 64 * 1024;
const known = new LRUCache<string, Scopes>({
  max: keptScopes,
  maxSize: keptCharacters,
  sizeCalculation: (_set, scope) => scope.length,
  memoMethod: (scope) => new Scopes(scope.split(' ')),
});

/**
 * The scopes of a verified token: those of `scope`, or of the claim that stands in for it. The elements of a list are
 * taken as they are: to split one would give a token scopes that its issuer did not write.
 */
export function readScopes(claims: JsonObject, scopeClaim: string | undefined): ReadonlySet<string> {
  const value = findClaim(claims, scopeClaim ?? 'scope');
  if (Array.isArray(value)) return new Scopes(value.filter((each) => typeof each === 'string'));
  return parseScope(typeof value === 'string' ? value : undefined);
}

/** The elements of the `scope` claim of a verified token (RFC 6749 §3.3): split on single spaces. */
export function parseScope(scope: string | undefined): ReadonlySet<string> {
  return scope === undefined || scope === '' ? noScopes : known.memo(scope);
}
