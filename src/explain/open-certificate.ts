import { failures, type Reason } from '../failures.ts';
import { type ExplainedCheck, type Explanation, nameCheck } from './explanation.ts';

/** The input has no client certificate, so its checks stay unknown, and the other checks decide. */
export function leaveCertificateOpen(explanation: Explanation): Explanation {
  const { checks } = explanation;
  if (!checks.some(isAboutCertificate)) return explanation;
  const left = checks.map((check) =>
    isAboutCertificate(check)
      ? { ...nameCheck(check.id), verdict: 'unknown' as const, why: 'the input has no client certificate' }
      : check,
  );
  const failed = left.find(({ verdict }) => verdict === 'fail');
  const { reason: _, status: __, ...rest } = explanation;
  if (explanation.verdict !== 'refused' || failed?.reason === undefined) {
    return { ...rest, verdict: 'undecided', checks: left };
  }
  const reason = failed.reason as Reason; // each check that fails has one
  const status = reason === explanation.reason ? explanation.status : failures[reason].status;
  return { ...explanation, reason, ...(status !== undefined && { status }), checks: left };
}

function isAboutCertificate({ group, verdict }: ExplainedCheck): boolean {
  return group === 'certificate' && verdict !== 'pass' && verdict !== 'skipped';
}
