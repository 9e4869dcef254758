import { type Check, createCheck } from '../checks.ts';
import { checkMembers } from '../option-members.ts';
import { type ClaimPath, findClaim } from '../token/grants.ts';
import type { PolicyFacts } from '../token/token-policy.ts';

/** A value that a condition compares, exactly and by JSON type. */
export type ClaimValue = string | number | boolean;

/**
 * A condition on one claim, by its name or its path. `equals`: the claim is this value. `contains`, `containsAny`: the claim is
 * an array with this value, or with one of these. A missing claim meets no condition.
 */
export type ClaimCondition<V = ClaimValue> = { readonly claim: ClaimPath } & (
  | { readonly equals: V }
  | { readonly contains: V }
  | { readonly containsAny: readonly V[] }
);

/** A value of the request, by its name in {@link PolicyFacts.bindings}. Only the gate creates it, from a rule's path or host. */
export class BoundValue {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

type Operand = ClaimValue | BoundValue;

interface CheckedCondition {
  readonly claim: ClaimPath;
  readonly takes: 'value' | 'array';
  readonly operands: readonly Operand[];
}

const operators = ['equals', 'contains', 'containsAny'] as const;

/** Requires that all conditions hold. Throws `TypeError` for conditions that cannot work. */
export function requireClaims(conditions: unknown): Check<PolicyFacts> {
  if (!Array.isArray(conditions) || conditions.length === 0) {
    throw new TypeError("policy: claimConditions must be a list, as in [{ claim: 'tenant', equals: 'acme' }]");
  }
  const checked = conditions.map(readCondition);
  const findUnmet = (facts: PolicyFacts) => {
    for (const condition of checked) if (!isMet(condition, facts)) return condition;
    return undefined;
  };
  return createCheck('claim_conditions', (facts) => findUnmet(facts) === undefined, {
    details: (facts) => ({ context: { claim: [findUnmet(facts)?.claim].flat().join('.') } }),
    compare: (facts) => {
      const { claim, operands } = findUnmet(facts) as CheckedCondition; // it is called only for a refusal
      return {
        expected: operands.map((operand) => String(resolve(operand, facts) ?? '')),
        received: findClaim(facts.token.claims, claim),
        identity: operands.some((operand) => operand instanceof BoundValue) ? 'both' : 'received',
      };
    },
  });
}

function readCondition(condition: unknown): CheckedCondition {
  if (typeof condition !== 'object' || condition === null) {
    throw new TypeError('policy: each of claimConditions must be an object');
  }
  checkMembers('claimConditions', condition, ['claim', ...operators]);
  const { claim } = condition as { readonly claim?: unknown };
  if (!isName(claim) && !(Array.isArray(claim) && claim.length > 0 && claim.every(isName))) {
    throw new TypeError('policy: claim must be the name of a claim, or the names of its path in a list');
  }
  const [operator, ...others] = operators.filter((name) => Object.hasOwn(condition, name));
  if (operator === undefined || others.length > 0) {
    throw new TypeError(`policy: each of claimConditions must have exactly one of ${operators.join(', ')}`);
  }
  const operand: unknown = Reflect.get(condition, operator);
  const operands: unknown = operator === 'containsAny' ? operand : [operand];
  if (!Array.isArray(operands) || operands.length === 0 || !operands.every(isOperand)) {
    throw new TypeError(
      `policy: ${operator} must be ${operator === 'containsAny' ? 'a list of strings, numbers or booleans, not empty' : 'a string, a number or a boolean'}`,
    );
  }
  const path = typeof claim === 'string' ? claim : [...(claim as readonly string[])];
  return { claim: path, takes: operator === 'equals' ? 'value' : 'array', operands: [...operands] };
}

function isMet({ claim, takes, operands }: CheckedCondition, facts: PolicyFacts): boolean {
  const value = findClaim(facts.token.claims, claim);
  if (value === undefined || (takes === 'array' && !Array.isArray(value))) return false;
  for (const operand of operands) {
    const expected = resolve(operand, facts);
    if (expected === undefined) continue;
    if (takes === 'array' && Array.isArray(value) ? value.includes(expected) : value === expected) return true;
  }
  return false;
}

/** An empty segment binds no value: a token with an empty claim must not match it. */
function resolve(operand: Operand, { bindings }: PolicyFacts): ClaimValue | undefined {
  return operand instanceof BoundValue ? bindings?.get(operand.name) || undefined : operand;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isOperand(value: unknown): value is Operand {
  return (
    typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value) || value instanceof BoundValue
  );
}
