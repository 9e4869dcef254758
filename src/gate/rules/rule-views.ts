import { describePolicy } from '../../server/console/route-views.ts';
import type { RouteView } from '../../server/console/wire.ts';
import type { Rule, Rules } from '../match/rules.ts';
import { type RuleMember, ruleMembers } from './schema/rule-members.ts';

export function describeRules(rules: Rules | undefined): readonly RouteView[] {
  return (rules?.rules ?? []).map((rule) => {
    const { id, path, hosts, methods, access, mode, policy } = rule;
    const needs = describePolicy(policy, describeOwn(rule, rules?.issuers.size ?? 0));
    return { id, kind: 'rule', path, hosts, methods, access, mode, ...needs };
  });
}

function describeOwn(rule: Rule, issuerCount: number): readonly string[] {
  const issuers = issuerCount > 1 && rule.issuers.length > 0 ? rule.issuers : undefined;
  const values = { ...rule, issuers, when: rule.when?.text };
  return Object.entries<RuleMember>(ruleMembers).flatMap(([name, { explain }]) => {
    const value: string | readonly string[] | undefined = Reflect.get(values, name); // what explain takes
    return explain === undefined || value === undefined ? [] : [explain(value)];
  });
}
