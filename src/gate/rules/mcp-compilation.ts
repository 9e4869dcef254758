import { createOperationPolicies } from '../../mcp/operation-policy.ts';
import { operationKinds } from '../../mcp/operations.ts';
import type { PlainPolicy } from '../../policy/policy.ts';
import { describeError } from './issuers-compilation.ts';
import type { RuleMcp } from './rules.ts';
import type { RuleEntry } from './schema/rules-schema.ts';
import type { ReportProblem } from './text/rules-text.ts';

export function compileMcp(
  { mcp, id }: Pick<RuleEntry, 'mcp' | 'id'>,
  policy: PlainPolicy,
  { isProxy, report }: { readonly isProxy: boolean; readonly report: ReportProblem },
): RuleMcp | undefined {
  if (mcp === undefined) return undefined;
  const { trustHeaders = false, ...maps } = mcp;
  if (trustHeaders && isProxy) report(['mcp', 'trustHeaders'], trustFix);
  try {
    const given = Object.fromEntries(operationKinds.flatMap((kind) => (maps[kind] ? [[kind, maps[kind]]] : [])));
    return { policies: createOperationPolicies({ ...given, policy }), trustsHeaders: trustHeaders };
  } catch (error) {
    report(['mcp'], `"mcp" of the rule "${id}" is not valid: ${describeError(error)}.`);
    return undefined;
  }
}

export const trustFix = 'As the proxy, the gate reads the body. Remove "trustHeaders".';
