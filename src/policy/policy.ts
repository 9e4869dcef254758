import { AccessError } from '../failures.ts';

/** What a route asks of a valid access token. An empty policy asks for nothing more than a valid token. */
export interface Policy {
  /** All of these must be elements of `scope`; compared exactly. */
  readonly scopes?: readonly string[];
}

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

/** The elements of a `scope` claim (RFC 6749 §3.3): split on single spaces. */
export function parseScope(scope: string | undefined): ReadonlySet<string> {
  return new Scopes(scope === undefined || scope === '' ? [] : scope.split(' '));
}

/** Refuses a token whose scopes do not satisfy the policy. */
export function enforcePolicy(policy: Policy, scopes: ReadonlySet<string>): void {
  if (policy.scopes === undefined) return;
  for (const scope of policy.scopes) {
    if (!scopes.has(scope)) throw new AccessError('insufficient_scope', { scopes: policy.scopes });
  }
}
