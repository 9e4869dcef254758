import type { DecidingRule, ExplainedCheck, Explanation } from './explanation.ts';

/** Adds the matching rule to an explanation. In report mode the request passes. */
export function decideBy(
  { id, mode }: Pick<DecidingRule, 'id' | 'mode'>,
  explanation: Explanation,
  remark?: string,
): Explanation {
  const { reason, status, ...rest } = explanation;
  const passes = mode === 'report' && explanation.verdict === 'refused';
  const why = [id, mode === 'report' ? 'in report mode' : '', remark ?? ''].filter(Boolean).join(', ');
  const check: ExplainedCheck = { id: 'rule', group: 'rule', verdict: 'pass', why };
  return {
    ...(passes ? { ...rest, verdict: 'admitted' } : explanation),
    rule: { id, mode, ...(passes && reason !== undefined && { wouldRefuse: reason }) },
    checks: [check, ...explanation.checks],
  };
}
