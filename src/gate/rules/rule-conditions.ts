import { addCheck } from '../../core/policy/checked-policy.ts';
import { BoundValue } from '../../core/policy/claim-conditions.ts';
import type { PlainPolicy } from '../../core/policy/policy.ts';
import { compileCondition } from '../conditions/condition.ts';
import { slashMark } from '../match/request-target.ts';
import { bindingForm, matchHost, type RuleHost, type RulePath } from '../match/rule-pattern.ts';
import type { Rule, RuleCondition } from '../match/rules.ts';
import { describeError } from './document-compilation.ts';
import type { ReportProblem } from './rules-text.ts';
import type { RuleEntry } from './schema/rules-schema.ts';

type Conditions = NonNullable<RuleEntry['claims']>;
type Value = string | number | boolean;

export interface RuleTarget {
  readonly hosts: readonly RuleHost[];
  readonly path: RulePath;
}

interface RuleTargetContext {
  readonly target: RuleTarget;
  readonly report: ReportProblem;
}

/** Compiles the conditions of a rule into its policy. Returns the function that binds `{name}`, if one is used. */
export function compileConditions(
  { claims }: RuleEntry,
  policy: PlainPolicy,
  { target, report }: RuleTargetContext,
): Pick<Rule, 'policy' | 'bind'> {
  if (claims === undefined) return { policy, bind: undefined };
  const { hosts, path } = target;
  const names = new Set<string>();
  for (const [index, condition] of claims.entries()) {
    for (const name of valuesOf(condition).flatMap((value) => readName(value) ?? [])) {
      names.add(name);
      const isInHosts = hosts.length > 0 && hosts.every((host) => host.names.has(name));
      if (!isInHosts && !path.names.has(name)) {
        report(
          ['claims', index],
          `Neither the path nor each host binds {${name}}. Write {${name}} as one segment or label.`,
        );
      }
    }
  }
  return {
    policy: { ...policy, claimConditions: claims.map(compileClaim) } as PlainPolicy, // with one operator each
    bind:
      names.size === 0
        ? undefined
        : (hostName, segments) => {
            const bindings = new Map<string, string>();
            for (const name of names) bindings.set(name, readValue(target, name, hostName, segments));
            return bindings;
          },
  };
}

/** Compiles the condition of a rule. Returns its policy with the condition. */
export function compileWhen(
  { when, id }: RuleEntry,
  policy: PlainPolicy,
  { target, headers, report }: RuleTargetContext & { readonly headers: readonly string[] },
): Pick<Rule, 'policy' | 'when'> {
  if (when === undefined) return { policy, when };
  const [first, ...others] = target.hosts.map((host) => host.names);
  const inHosts = [...(first?.keys() ?? [])].filter((name) => others.every((names) => names.has(name)));
  const names = new Set([...target.path.names.keys(), ...inHosts]);
  try {
    const { check, readsRequest } = compileCondition(when, { names, headers });
    const bind: RuleCondition['bind'] = (hostName, segments) => {
      return new Map([...names].map((name) => [name, readValue(target, name, hostName, segments)]));
    };
    return { policy: addCheck(policy, check), when: { text: when, bind: readsRequest ? bind : undefined } };
  } catch (error) {
    report(['when'], `The condition of the rule "${id}" cannot be used. ${describeError(error)}.`);
    return { policy, when: undefined };
  }
}

function valuesOf({ equals, contains, containsAny = [] }: Conditions[number]): readonly Value[] {
  return [equals, contains, ...containsAny].filter((value) => value !== undefined);
}

function readName(value: Value): string | undefined {
  return typeof value === 'string' ? bindingForm.exec(value)?.[1] : undefined;
}

function compileClaim({ claim, equals, contains, containsAny }: Conditions[number]) {
  const compile = (value: Value): Value | BoundValue => {
    const name = readName(value);
    return name === undefined ? value : new BoundValue(name);
  };
  return {
    claim,
    ...(equals !== undefined && { equals: compile(equals) }),
    ...(contains !== undefined && { contains: compile(contains) }),
    ...(containsAny !== undefined && { containsAny: containsAny.map(compile) }),
  };
}

/** Returns the bound value; empty if several hosts of the rule match and bind different values. */
function readValue({ hosts, path }: RuleTarget, name: string, hostName: string, segments: readonly string[]): string {
  const index = path.names.get(name);
  if (index !== undefined) return (segments[index] ?? '').replaceAll(slashMark, '/');
  const values = new Set(hosts.flatMap((host) => matchHost(host, hostName)?.[host.names.get(name) ?? -1] ?? []));
  const [value = ''] = values;
  return values.size === 1 ? value : '';
}
