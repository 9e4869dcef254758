import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../jose/json.ts';
import { findClaim, noScopes, Scopes } from './grants.ts';

/** An issuer writes few scope strings, and many tokens with each. */
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
 * Reads the scopes of a verified token, from `scope` or the configured claim. The elements of an array are not split: that
 * would give a token scopes that its issuer did not write.
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
