import { Refused } from '../../refused.ts';
import type { Rule, Rules } from '../rules/rules.ts';
import type { RuleEntry } from '../rules/schema/rules-schema.ts';
import type { RuleSamples } from './rule-samples.ts';

/** A rule with methods or hosts, and a rule that requires less of the other methods or hosts of its path. */
export interface Weaker {
  readonly id: string;
  readonly index: number;
  readonly member: 'methods' | 'hosts';
  readonly other: string;
}

/**
 * Finds rules whose methods or hosts leave requests to a rule that requires less and names none: `get` and `PROPFIND` are
 * methods too, and a client may send any host.
 */
export function findWeaker(entries: readonly RuleEntry[], rules: Rules, samples: RuleSamples): readonly Weaker[] {
  return entries.flatMap((entry, index) => {
    const rule = rules.rules[index];
    const members = (['methods', 'hosts'] as const).filter((member) => entry[member] !== undefined);
    if (rule === undefined || members.length === 0) return [];
    const strength = strengthOf(rule);
    const found = new Map<string, Weaker>();
    const paths = samples.pathsOf(entry);
    const [method = ''] = samples.methodsOf(entry);
    for (const host of samples.hostsOf(entry)) {
      for (const path of paths) {
        const chosen = samples.choose(host, path, method);
        if (chosen instanceof Refused || chosen.id !== rule.id) continue;
        for (const member of members) {
          const other =
            member === 'methods'
              ? samples.choose(host, path, samples.method)
              : samples.choose(samples.host, path, method);
          if (other instanceof Refused || strengthOf(other) >= strength) continue;
          found.set(`${member} ${other.id}`, { id: rule.id, index, member, other: other.id });
        }
      }
    }
    return [...found.values()];
  });
}

export function describeWeaker({ id, member, other }: Weaker): string {
  const requests = member === 'methods' ? 'another method, such as get or PROPFIND,' : 'another host';
  return `the rule "${id}" names ${member}, and requests for its path with ${requests} get the rule "${other}", which requires less`;
}

export function fixWeaker({ member, other }: Weaker): string {
  return `Omit "${member}", or name the ${member} of the rule "${other}".`;
}

const accesses: Readonly<Record<Rule['access'], number>> = { open: 0, optional: 1, token: 2, deny: 4 };

function strengthOf({ access, mode, policy, dpop, mcp }: Rule): number {
  if (mode === 'report') return 0;
  const requiresMore =
    access === 'token' && (dpop === 'required' || mcp !== undefined || Object.keys(policy).length > 0);
  return requiresMore ? 3 : accesses[access];
}
