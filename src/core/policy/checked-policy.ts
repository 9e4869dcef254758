import type { StandardSchemaV1 } from '@standard-schema/spec';
import { attempt, isThenable } from '../attempt.ts';
import { refuseBy } from '../checks.ts';
import { isJsonObject } from '../jose/json.ts';
import { checkMembers, refuseMember, refuseUndefined } from '../option-members.ts';
import { Refused } from '../refused.ts';
import type { CheckedPolicy, ReadClaims, Verdict } from '../token/token-policy.ts';
import type {
  Combinable,
  Combination,
  Combined,
  GivenAlone,
  GivenByAll,
  PlainCombinedPolicy,
  PlainPolicy,
  Policy,
} from './policy.ts';
import { type PolicyCheck, requirements } from './policy-checks.ts';

export const memberNames = Object.keys(requirements) as readonly (keyof typeof requirements)[]; // its keys
const maxPathLength = 200;

/** Policies in their first form; later changes are ignored. */
const seen = new WeakMap<object, CheckedPolicy>();

/** Checks a policy when it is first seen. Throws `TypeError`, with the fix, for one that cannot work. */
export function checkPolicy(policy: Policy<unknown>): CheckedPolicy {
  const known = seen.get(policy);
  if (known !== undefined) return known;
  if (typeof policy !== 'object' || policy === null || Array.isArray(policy)) {
    throw new TypeError("policy: write an object, as in { scopes: ['read:messages'] }");
  }
  const checked = isCombined(policy) ? checkCombination(policy) : checkRequirements(policy);
  seen.set(policy, checked);
  return checked;
}

/** Reports whether `allOf` or `anyOf` created a policy. */
export function isCombined(policy: Policy<unknown>): policy is PlainCombinedPolicy {
  return 'policies' in policy;
}

/** Returns a copy of a policy with one more check, which is made after its own. Throws `TypeError` like {@link checkPolicy}. */
export function addCheck(policy: PlainPolicy, check: PolicyCheck): PlainPolicy {
  const extended = { ...policy };
  seen.set(extended, checkRequirements(policy, [check]));
  return extended;
}

export function registerPolicy(checked: CheckedPolicy): Policy<unknown> {
  const policy: Policy<unknown> = {};
  seen.set(policy, checked);
  return policy;
}

/** The scopes that a challenge names for a policy; none for one that cannot work. */
export function namedScopes(policy: Policy<unknown> | undefined): readonly string[] {
  // The defect was reported where the policy evaluated the request.
  return policy === undefined ? [] : (attempt(checkPolicy, policy)?.scopes ?? []);
}

function checkRequirements(
  policy: Exclude<Policy<unknown>, PlainCombinedPolicy>,
  more: readonly PolicyCheck[] = [],
): CheckedPolicy {
  // A misspelled member would silently require nothing, and so would a variable that was never set.
  const known: readonly string[] = memberNames;
  const names = Object.keys(policy);
  for (const name of names) if (!known.includes(name)) throw refuseMember('policy', name, known);
  // A promise has no members.
  if (names.length === 0) checkMembers('policy', policy, known);
  const checks: PolicyCheck[] = [];
  for (const name of memberNames) {
    const value = policy[name];
    if (value !== undefined) checks.push(...requirements[name](value, policy));
    else if (Object.hasOwn(policy, name)) throw refuseUndefined('policy', name);
  }
  checks.push(...more);
  const { scopes = [], anyScope = [], claims } = policy;
  const readClaims = claims === undefined ? undefined : createSchemaReader(claims);
  return {
    scopes: [...scopes, ...anyScope],
    hasSchema: readClaims !== undefined,
    made: { of: 'checks', checks, readClaims },
    judge(facts) {
      // A separate loop, like the token cache's.
      for (const check of checks) if (!check.passes(facts)) return refuseBy(check, facts);
      return readClaims?.(facts.token.claims);
    },
  };
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

/** Reports only the path of an issue: messages may repeat the token. Throws `TypeError` for an invalid result. */
function readResult(result: unknown): Verdict {
  const { issues } = Object(result) as { readonly issues?: unknown };
  if (issues === undefined) {
    if (typeof result !== 'object' || result === null || !Object.hasOwn(result, 'value')) {
      throw new TypeError('policy: the schema of claims gave neither issues nor a value');
    }
    return { claims: Reflect.get(result, 'value') };
  }
  const [first] = Array.isArray(issues) ? (issues as readonly StandardSchemaV1.Issue[]) : [];
  const path = (first?.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return new Refused('unaccepted_claims', { context: { claim: path.slice(0, maxPathLength) } });
}

/** All parts must hold, or one of them. Without a schema there is no promise: most policies have none. */
function checkCombination(policy: PlainCombinedPolicy): CheckedPolicy {
  checkMembers('policy', policy, ['mode', 'policies']);
  const { mode, policies } = policy as unknown as Combination; // its type hides them
  if (mode !== 'all' && mode !== 'any') throw new TypeError('policy: combine with allOf(…) or anyOf(…)');
  const parts = policies.map(checkPolicy);
  if (parts.length === 0) throw new TypeError('policy: allOf and anyOf take at least one policy');
  const hasSchema = parts.some((part) => part.hasSchema);
  // A client that requested the scopes of all alternatives would request more than it needs.
  const first = parts.find((part) => part.scopes.length > 0)?.scopes ?? [];
  return {
    scopes: mode === 'all' ? [...new Set(parts.flatMap((part) => part.scopes))] : first,
    hasSchema,
    made: { of: mode, parts },
    judge(facts) {
      const judgeFrom = (index: number, before: Verdict): Judged => {
        const part = parts[index];
        if (part === undefined) return before;
        const goOn = (verdict: Verdict): Judged => {
          // The first refusal decides for `all`, and the first part that holds for `any`. With schemas, unchanged claims
          // count as given.
          if (verdict instanceof Refused === (mode === 'all')) {
            return verdict ?? (hasSchema ? { claims: facts.token.claims } : undefined);
          }
          return judgeFrom(index + 1, mode === 'all' ? merge(before, verdict) : (before ?? verdict));
        };
        const judged = part.judge(facts);
        return judged instanceof Promise ? judged.then(goOn) : goOn(judged);
      };
      return judgeFrom(0, undefined);
    },
  };
}

type Judged = Verdict | Promise<Verdict>;

/** A refusal has ended the combination before. */
function merge(before: Verdict, added: Verdict): Verdict {
  if (before === undefined || added === undefined) return before ?? added;
  if ('claims' in before && 'claims' in added && isJsonObject(before.claims) && isJsonObject(added.claims)) {
    return { claims: { ...before.claims, ...added.claims } };
  }
  throw new TypeError('policy: schemas in one allOf(…) must all give objects');
}

/**
 * All of these must hold. If several have a schema, the handler gets the members of each; a later schema wins. Throws
 * `TypeError` for an invalid policy.
 *
 * @example
 * const policy = allOf({ scopes: ['read:messages'] }, { acr: 'urn:example:gold' });
 */
export function allOf<P extends Combinable>(...policies: P): Combined<GivenByAll<P>> {
  return combine('all', policies);
}

/**
 * One of these is enough; they are tried in their order, and the first says what is refused. Throws `TypeError` for a
 * policy that cannot work.
 *
 * @example
 * const policy = anyOf({ scopes: ['read:messages'] }, { permissions: ['messages:read'] });
 */
export function anyOf<P extends Combinable>(...policies: P): Combined<GivenAlone<P[number]>> {
  return combine('any', policies);
}

function combine<C>(mode: Combination['mode'], policies: Combinable): Combined<C> {
  if (policies.some(Array.isArray)) {
    throw new TypeError(`${mode}Of: write the policies one behind the other, as in ${mode}Of(one, other), and no list`);
  }
  const combination: Combination = { mode, policies };
  const combined = combination as unknown as Combined<C>; // what differs is only for the compiler
  checkPolicy(combined);
  return combined;
}
