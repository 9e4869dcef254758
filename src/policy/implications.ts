import { checkScopeNames } from './members.ts';

/** The scopes that each scope includes, as in `{ 'files:write': ['files:read'] }`. */
export type Implications = Readonly<Record<string, readonly string[]>>;

/** Returns all scopes that grant a required scope, the scope itself included. */
export type FindGranting = (scope: string) => readonly string[];

/** Reads `implies`, transitively. Throws `TypeError` for invalid scopes, and for a cycle. */
export function readImplications(implies: unknown): FindGranting {
  if (typeof implies !== 'object' || implies === null || Array.isArray(implies)) {
    throw new TypeError("policy: implies must be an object, as in { 'files:write': ['files:read'] }");
  }
  const included = new Map(
    Object.entries(implies).map(([scope, scopes]) => {
      checkScopeNames('implies', [scope]);
      return [scope, checkScopeNames('implies', scopes)] as const;
    }),
  );
  const granting = new Map<string, string[]>();
  for (const granted of included.keys()) {
    const visited = new Set<string>();
    const visit = (scope: string, path: readonly string[]): void => {
      if (path.includes(scope)) throw new TypeError('policy: implies has a cycle');
      if (visited.has(scope)) return;
      visited.add(scope);
      for (const next of included.get(scope) ?? []) visit(next, [...path, scope]);
    };
    visit(granted, []);
    visited.delete(granted);
    for (const scope of visited) granting.set(scope, [...(granting.get(scope) ?? [scope]), granted]);
  }
  return (scope) => granting.get(scope) ?? [scope];
}
