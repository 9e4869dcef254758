import { addCheck } from '../../core/policy/checked-policy.ts';
import type { PlainPolicy } from '../../core/policy/policy.ts';
import { compileCondition } from '../conditions/condition.ts';
import { slashMark } from '../match/request-target.ts';
import { matchHost, type RuleHost, type RulePath } from '../match/rule-pattern.ts';
import type { Rule, RuleCondition } from '../match/rules.ts';
import { describeError } from './document-compilation.ts';
import type { ReportProblem } from './rules-text.ts';
import type { RuleEntry } from './schema/rules-schema.ts';

export interface RuleTarget {
  readonly hosts: readonly RuleHost[];
  readonly path: RulePath;
}

interface RuleConditionContext {
  readonly target: RuleTarget;
  /** Names of the headers that the gate sets. */
  readonly headers: readonly string[];
  readonly report: ReportProblem;
}

/** Compiles the condition of a rule. Returns its policy with the condition. */
export function compileWhen(
  { when, id }: RuleEntry,
  policy: PlainPolicy,
  { target, headers, report }: RuleConditionContext,
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

/** Returns the bound value; empty if several hosts of the rule match and bind different values. */
function readValue({ hosts, path }: RuleTarget, name: string, hostName: string, segments: readonly string[]): string {
  const index = path.names.get(name);
  if (index !== undefined) return (segments[index] ?? '').replaceAll(slashMark, '/');
  const values = new Set(hosts.flatMap((host) => matchHost(host, hostName)?.[host.names.get(name) ?? -1] ?? []));
  const [value = ''] = values;
  return values.size === 1 ? value : '';
}
