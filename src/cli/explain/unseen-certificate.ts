import type { ExplainedCheck, Explanation } from '../../explain/explanation.ts';
import { failures, type Reason } from '../../failures.ts';

/**
 * No text has the certificate that a client presents on TLS, so whether it is the right one is unknown: the rest is judged
 * as if it were.
 */
export function leaveCertificateOpen(explanation: Explanation): Explanation {
  const { checks } = explanation;
  if (!checks.some(isAboutCertificate)) return explanation;
  const left = checks.map((check) => (isAboutCertificate(check) ? leaveOpen(check) : check));
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
  return group === 'certificate' && verdict !== 'pass';
}

function leaveOpen({ id, group }: ExplainedCheck): ExplainedCheck {
  return { id, group, verdict: 'unknown', why: 'the certificate of the client is not in the text' };
}
