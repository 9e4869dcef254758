import type { DecidingRule, ExplainedCheck, Explanation } from './explanation.ts';

/** The same explanation, with the rule that decides: one that only reports lets the call pass. */
export function decideBy(
  { id, mode }: Pick<DecidingRule, 'id' | 'mode'>,
  explanation: Explanation,
  remark?: string,
): Explanation {
  const { reason, status, ...rest } = explanation;
  const passes = mode === 'report' && explanation.verdict === 'refused';
  const why = [id, mode === 'report' ? 'it only reports' : '', remark ?? ''].filter(Boolean).join(', ');
  const check: ExplainedCheck = { id: 'rule', group: 'rule', verdict: 'pass', why };
  return {
    ...(passes ? { ...rest, verdict: 'admitted' } : explanation),
    rule: { id, mode, ...(passes && reason !== undefined && { wouldRefuse: reason }) },
    checks: [check, ...explanation.checks],
  };
}
