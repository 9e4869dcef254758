import { namedScopes } from './checked-policy.ts';
import type { Policy } from './policy.ts';

const known = new WeakMap<object, readonly string[]>();

/** Returns one array for equal requirements, so that lines can be cached. */
export function listRequiredScopes(policy: Policy<unknown>): readonly string[] {
  const [key, scopes] =
    'policies' in policy
      ? [policy, () => policy.policies.flatMap(listRequiredScopes)]
      : [namedScopes(policy), () => namedScopes(policy)];
  const found = known.get(key) ?? [...new Set(scopes())];
  known.set(key, found);
  return found;
}
