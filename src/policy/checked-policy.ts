import type { StandardSchemaV1 } from '@standard-schema/spec';
import { refuseBy } from '../check.ts';
import { isJsonObject } from '../jose/json.ts';
import { Refused } from '../refused.ts';
import type { CheckedPolicy, Given, ReadClaims, Verdict } from '../token/token-policy.ts';
import { requireActor } from './actor-checks.ts';
import { requireClaims } from './claim-conditions.ts';
import { readImplications } from './implications.ts';
import { checkDefined, checkMembers, checkScopeNames } from './members.ts';
import type { PlainCombinedPolicy, Policy, Requirements } from './policy.ts';
import {
  type PolicyCheck,
  requireAcr,
  requireAge,
  requireAnyScope,
  requireAudience,
  requirePermissions,
  requireScopes,
} from './policy-checks.ts';

export const memberNames = [
  'audience',
  'scopes',
  'anyScope',
  'permissions',
  'implies',
  'actor',
  'claimConditions',
  'acr',
  'maxAge',
  'claims',
];
const textGrammar = /./;
const maxPathLength = 200;

/** Policies in their first form; later changes are ignored. */
const seen = new WeakMap<object, CheckedPolicy>();

/** Checks a policy when it is first seen. Throws `TypeError`, with the fix, for one that cannot work. */
export function checkPolicy(policy: Policy<unknown>): CheckedPolicy {
  const known = seen.get(policy);
  if (known !== undefined) return known;
  if (typeof policy !== 'object' || policy === null) {
    throw new TypeError("policy: write an object, as in { scopes: ['read:messages'] }");
  }
  const checked = 'policies' in policy ? checkCombination(policy) : checkRequirements(policy);
  seen.set(policy, checked);
  return checked;
}

export function registerPolicy(checked: CheckedPolicy): Policy<unknown> {
  const policy: Policy<unknown> = {};
  seen.set(policy, checked);
  return policy;
}

/** The scopes that a challenge names for a policy; none for one that cannot work. */
export function namedScopes(policy: Policy<unknown> | undefined): readonly string[] {
  if (policy === undefined) return [];
  try {
    return checkPolicy(policy).scopes;
  } catch {
    return []; // said where the policy was to judge
  }
}

function checkRequirements(policy: Exclude<Policy<unknown>, PlainCombinedPolicy>): CheckedPolicy {
  checkMembers('policy', policy, memberNames);
  checkDefined('policy', policy);
  const { audience, scopes, anyScope, permissions, implies, actor, claimConditions } = policy;
  const findGranting = implies === undefined ? undefined : readImplications(implies);
  const checks: PolicyCheck[] = [];
  if (audience !== undefined) checks.push(requireAudience(readAudience(audience)));
  if (scopes !== undefined) checks.push(requireScopes(checkScopeNames('scopes', scopes), findGranting));
  if (anyScope !== undefined) checks.push(requireAnyScope(checkScopeNames('anyScope', anyScope), findGranting));
  if (permissions !== undefined)
    checks.push(requirePermissions(checkScopeNames('permissions', permissions, textGrammar)));
  if (actor !== undefined) checks.push(...requireActor(actor));
  if (claimConditions !== undefined) checks.push(requireClaims(claimConditions));
  checks.push(...requireAuthentication(policy));
  const readClaims = policy.claims === undefined ? undefined : createSchemaReader(policy.claims);
  return {
    scopes: [...(scopes ?? []), ...(anyScope ?? [])],
    hasSchema: readClaims !== undefined,
    made: { of: 'checks', checks, readClaims },
    judge(facts) {
      // A separate loop, like the token cache's.
      for (const check of checks) if (!check.passes(facts)) return refuseBy(check, facts);
      return readClaims?.(facts.token.claims);
    },
  };
}

function readAudience(audience: string | readonly string[]): readonly string[] {
  return checkScopeNames('audience', typeof audience === 'string' ? [audience] : audience, textGrammar);
}

/** Both checks tell the whole of what is needed: a client that steps up does it once. */
function requireAuthentication({ acr, maxAge }: Requirements): readonly PolicyCheck[] {
  const acrValues = acr === undefined ? [] : checkScopeNames('acr', typeof acr === 'string' ? [acr] : acr);
  if (maxAge !== undefined && !(Number.isSafeInteger(maxAge) && maxAge >= 0)) {
    throw new TypeError('policy: write maxAge in whole seconds, 0 or more');
  }
  const stepUp = { acrValues, maxAge };
  return [
    ...(acrValues.length > 0 ? [requireAcr(stepUp)] : []),
    ...(maxAge === undefined ? [] : requireAge(maxAge, stepUp)),
  ];
}

function createSchemaReader(schema: StandardSchemaV1): ReadClaims {
  // A schema may be a function, such as arktype's.
  const standard: unknown = Object(schema)['~standard'];
  if (!isJsonObject(standard) || typeof standard['validate'] !== 'function') {
    throw new TypeError('policy: claims is a Standard Schema, such as z.object({ … }) of zod');
  }
  const { validate } = schema['~standard'];
  return (claims) => {
    const result: unknown = validate(copy(claims));
    // A promise of another library or realm is awaited as well.
    return isThenable(result) ? Promise.resolve(result).then(readResult) : readResult(result);
  };
}

/** For schemas that write into what they are given: the claims themselves are frozen, and shared by requests. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copy(each)]));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Reports whether a value is a promise, also one of another library or realm. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof Object(value).then === 'function';
}

/**
 * Reads the result of a schema. Its messages may repeat the token: only the path is reported. Throws `TypeError` for an
 * invalid result, because then the claims are not known to match.
 */
function readResult(result: unknown): Verdict {
  const { issues } = Object(result) as { readonly issues?: unknown };
  if (issues === undefined) {
    if (!isObject(result) || !Object.hasOwn(result, 'value')) {
      throw new TypeError('policy: the schema of claims gave neither issues nor a value');
    }
    return { claims: Reflect.get(result, 'value') };
  }
  const [first] = Array.isArray(issues) ? (issues as readonly StandardSchemaV1.Issue[]) : [];
  const path = (first?.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return new Refused('unaccepted_claims', { context: { claim: path.slice(0, maxPathLength) } });
}

function checkCombination(policy: PlainCombinedPolicy): CheckedPolicy {
  checkMembers('policy', policy, ['mode', 'policies']);
  const { mode, policies } = policy;
  if (mode !== 'all' && mode !== 'any') throw new TypeError('policy: combine with allOf(…) or anyOf(…)');
  const parts = policies.map(checkPolicy);
  if (parts.length === 0) throw new TypeError('policy: allOf and anyOf take at least one policy');
  return mode === 'all' ? checkAll(parts) : checkAny(parts);
}

function checkAll(parts: readonly CheckedPolicy[]): CheckedPolicy {
  return {
    scopes: [...new Set(parts.flatMap(({ scopes }) => scopes))],
    hasSchema: parts.some(({ hasSchema }) => hasSchema),
    made: { of: 'all', parts },
    judge(facts) {
      const judgeFrom = (index: number, given: Given | undefined): Judged => {
        const part = parts[index];
        if (part === undefined) return given;
        return continueWith(part.judge(facts), (verdict) =>
          verdict instanceof Refused ? verdict : judgeFrom(index + 1, merge(given, verdict)),
        );
      };
      return judgeFrom(0, undefined);
    },
  };
}

function checkAny(parts: readonly CheckedPolicy[]): CheckedPolicy {
  const hasSchema = parts.some((part) => part.hasSchema);
  return {
    // A client that requested the scopes of all parts would request more than it needs.
    scopes: parts.find(({ scopes }) => scopes.length > 0)?.scopes ?? [],
    hasSchema,
    made: { of: 'any', parts },
    judge(facts) {
      // With schemas, unchanged claims count as given.
      const pass = (verdict: Given | undefined): Verdict =>
        verdict ?? (hasSchema ? { claims: facts.token.claims } : undefined);
      const judgeFrom = (index: number, first: Verdict): Judged => {
        const part = parts[index];
        if (part === undefined) return first;
        return continueWith(part.judge(facts), (verdict) =>
          verdict instanceof Refused ? judgeFrom(index + 1, first ?? verdict) : pass(verdict),
        );
      };
      return judgeFrom(0, undefined);
    },
  };
}

type Judged = Verdict | Promise<Verdict>;

/** Passes a verdict to the next step, without a promise if there is none: most policies have no schema. */
function continueWith(verdict: Judged, next: (verdict: Verdict) => Judged): Judged {
  return verdict instanceof Promise ? verdict.then(next) : next(verdict);
}

function merge(given: Given | undefined, added: Given | undefined): Given | undefined {
  if (given === undefined || added === undefined) return given ?? added;
  if (!isJsonObject(given.claims) || !isJsonObject(added.claims)) {
    throw new TypeError('policy: schemas in one allOf(…) must all give objects');
  }
  return { claims: { ...given.claims, ...added.claims } };
}
