import { describePolicy } from '../../server/console/route-views.ts';
import type { RouteView } from '../../server/console/wire.ts';
import type { Rule, Rules } from '../match/rules.ts';
import { ruleMembers } from './schema/rule-members.ts';

export function describeRules(rules: Rules | undefined): readonly RouteView[] {
  return (rules?.rules ?? []).map((rule) => ({
    id: rule.id,
    kind: 'rule',
    path: rule.path,
    hosts: rule.hosts,
    methods: rule.methods,
    access: rule.access,
    mode: rule.mode,
    ...describePolicy(rule.policy, describeOwn(rule, rules?.issuers.size ?? 0)),
  }));
}

function describeOwn({ issuers, dpop, exchange, when }: Rule, issuerCount: number): readonly string[] {
  return [
    ...(when === undefined ? [] : [ruleMembers.when.explain(when.text)]),
    ...(issuers.length > 0 && issuerCount > 1 ? [ruleMembers.issuers.explain(issuers)] : []),
    ...(dpop === undefined ? [] : [ruleMembers.dpop.explain(dpop)]),
    ...(exchange === undefined ? [] : [ruleMembers.exchange.explain(exchange)]),
  ];
}
