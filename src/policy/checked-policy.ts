import type { StandardSchemaV1 } from '@standard-schema/spec';
import { refuseBy } from '../check.ts';
import { AccessError } from '../failures.ts';
import { isJsonObject } from '../jose/json.ts';
import { after, type MaybePromise } from '../maybe-promise.ts';
import type { CheckedPolicy, Given, ReadClaims, Verdict } from '../token/token-policy.ts';
import { checkDefined, checkMembers } from './members.ts';
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

/** The members of a policy. */
export const memberNames = ['audience', 'scopes', 'anyScope', 'permissions', 'acr', 'maxAge', 'claims'];
// RFC 6749 §3.3 scope-token; acr_values are separated by spaces as well.
const tokenGrammar = /^[\x21\x23-\x5b\x5d-\x7e]+$/;
const textGrammar = /./;
const maxPathLength = 200;

/** Policies as they were first seen; a change of one is not looked at. */
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
  const { audience, scopes, anyScope, permissions } = policy;
  const checks: PolicyCheck[] = [];
  if (audience !== undefined) checks.push(requireAudience(readAudience(audience)));
  if (scopes !== undefined) checks.push(requireScopes(readNames('scopes', scopes, tokenGrammar)));
  if (anyScope !== undefined) checks.push(requireAnyScope(readNames('anyScope', anyScope, tokenGrammar)));
  if (permissions !== undefined) checks.push(requirePermissions(readNames('permissions', permissions, textGrammar)));
  checks.push(...requireAuthentication(policy));
  const readClaims = policy.claims === undefined ? undefined : createSchemaReader(policy.claims);
  return {
    scopes: [...(scopes ?? []), ...(anyScope ?? [])],
    hasSchema: readClaims !== undefined,
    made: { of: 'checks', checks, readClaims },
    judge(facts) {
      // A loop of its own, as that of the token cache.
      for (const check of checks) if (!check.passes(facts)) return refuseBy(check, facts);
      return readClaims?.(facts.token.claims);
    },
  };
}

function readNames(name: string, value: unknown, grammar: RegExp): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new TypeError(`policy: ${name} names at least one, in a list; to ask for none leave it out`);
  }
  if (!value.every((each) => typeof each === 'string' && grammar.test(each))) {
    throw new TypeError(`policy: write each of ${name} as a text of its own, without spaces and quotation marks`);
  }
  return [...value];
}

function readAudience(audience: string | readonly string[]): readonly string[] {
  return readNames('audience', typeof audience === 'string' ? [audience] : audience, textGrammar);
}

/** Both checks tell the whole of what is needed: a client that steps up does it once. */
function requireAuthentication({ acr, maxAge }: Requirements): readonly PolicyCheck[] {
  const acrValues = acr === undefined ? [] : readNames('acr', typeof acr === 'string' ? [acr] : acr, tokenGrammar);
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
  // A schema may be a function, as those of arktype are.
  const standard: unknown = Object(schema)['~standard'];
  if (!isJsonObject(standard) || typeof standard['validate'] !== 'function') {
    throw new TypeError('policy: claims is a Standard Schema, such as z.object({ … }) of zod');
  }
  const { validate } = schema['~standard'];
  return (claims) => {
    const result: unknown = validate(copy(claims));
    // A promise of another library or realm is waited for as well.
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
 * Messages of a schema may repeat what the token says: only the path is told. Throws `TypeError` for what is no result:
 * nothing says then that the claims fit.
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
  return new AccessError('unaccepted_claims', { context: { claim: path.slice(0, maxPathLength) } });
}

function checkCombination(policy: PlainCombinedPolicy): CheckedPolicy {
  checkMembers('policy', policy, ['mode', 'policies']);
  const { mode, policies } = policy;
  if (mode !== 'all' && mode !== 'any') throw new TypeError('policy: combine with allOf(…) or anyOf(…)');
  const [first, ...others] = policies.map(checkPolicy);
  if (first === undefined) throw new TypeError('policy: allOf and anyOf take at least one policy');
  return mode === 'all' ? checkAll([first, ...others]) : checkAny(first, others);
}

function checkAll(parts: readonly CheckedPolicy[]): CheckedPolicy {
  return {
    scopes: [...new Set(parts.flatMap(({ scopes }) => scopes))],
    hasSchema: parts.some(({ hasSchema }) => hasSchema),
    made: { of: 'all', parts },
    judge(facts) {
      const judgeFrom = (index: number, given: Given | undefined): MaybePromise<Verdict> => {
        const part = parts[index];
        if (part === undefined) return given;
        const goOn = (verdict: Verdict): MaybePromise<Verdict> =>
          verdict instanceof AccessError ? verdict : judgeFrom(index + 1, merge(given, verdict));
        return after(part.judge(facts), goOn, undefined);
      };
      return judgeFrom(0, undefined);
    },
  };
}

function checkAny(first: CheckedPolicy, others: readonly CheckedPolicy[]): CheckedPolicy {
  const parts = [first, ...others];
  const hasSchema = parts.some((part) => part.hasSchema);
  return {
    // A client that asked for the scopes of all would ask for more than it needs.
    scopes: parts.find(({ scopes }) => scopes.length > 0)?.scopes ?? [],
    hasSchema,
    made: { of: 'any', parts },
    judge(facts) {
      // Beside schemas, the claims as they are count as given.
      const pass = (verdict: Given | undefined): Verdict =>
        verdict ?? (hasSchema ? { claims: facts.token.claims } : undefined);
      const judgeFrom = (index: number, refusal: AccessError): MaybePromise<Verdict> => {
        const part = others[index];
        if (part === undefined) return refusal;
        const goOn = (verdict: Verdict): MaybePromise<Verdict> =>
          verdict instanceof AccessError ? judgeFrom(index + 1, refusal) : pass(verdict);
        return after(part.judge(facts), goOn, undefined);
      };
      const goOn = (verdict: Verdict): MaybePromise<Verdict> =>
        verdict instanceof AccessError ? judgeFrom(0, verdict) : pass(verdict);
      return after(first.judge(facts), goOn, undefined);
    },
  };
}

function merge(given: Given | undefined, added: Given | undefined): Given | undefined {
  if (given === undefined || added === undefined) return given ?? added;
  if (!isJsonObject(given.claims) || !isJsonObject(added.claims)) {
    throw new TypeError('policy: schemas in one allOf(…) must all give objects');
  }
  return { claims: { ...given.claims, ...added.claims } };
}
