import { describePolicy } from '../../server/console/route-views.ts';
import type { RouteView } from '../../server/console/wire.ts';
import type { Rule, Rules } from './rules.ts';

/** The rules of the gate, for a person to look at. */
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

/** What a rule asks for besides its policy. */
function describeOwn({ issuers, dpop }: Rule, known: number): readonly string[] {
  return [
    ...(issuers.length > 0 && known > 1 ? [`issuer ${issuers.join(' or ')}`] : []),
    ...(dpop === undefined ? [] : [`DPoP ${dpop}`]),
  ];
}
