import { AccessError } from '../failures.ts';

/** What a route asks of a valid access token. An empty policy asks for nothing more than a valid token. */
export interface Policy {
  /** All of these must be elements of `scope`; compared exactly. */
  readonly scopes?: readonly string[];
}

/** The elements of a `scope` claim (RFC 6749 §3.3): split on single spaces. */
export function parseScope(scope: string | undefined): ReadonlySet<string> {
  return new Set(scope === undefined || scope === '' ? [] : scope.split(' '));
}

/** Refuses a token whose scopes do not satisfy the policy. */
export function enforcePolicy(policy: Policy, scopes: ReadonlySet<string>): void {
  if (policy.scopes === undefined) return;
  for (const scope of policy.scopes) {
    if (!scopes.has(scope)) throw new AccessError('insufficient_scope', { scopes: policy.scopes });
  }
}
